// The page of `corral dashboard`: reads cluster.json and job/JOB.json of its own server, and shows them.
// What a job or a user has named is only ever set as text.
"use strict";
(() => {
  const CLUSTER_MS = 2000, JOB_MS = 5000, TICK_MS = 1000, LEAST_STALE_S = 30;
  const LETTERS = {
    allocated: ["A", "runs a job"], idle: ["I", "idle"], booting: ["B", "booting"], stopping: ["S", "stopping"],
    draining: ["D", "draining"], down: ["X", "down"], off: ["·", "off"],
  };
  const JOB = /^#job\/([0-9]{1,9}(?:_[0-9]{1,9})?)$/;
  const at = (id) => document.getElementById(id);
  let cluster = null, clusterText = "", job = null, jobText = "", skewMs = 0, isLost = false, shownJob = "";

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }
  function drawn(tag, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Words
  const now = () => Date.now() + skewMs;
  const secondsSince = (moment) => Math.max(0, Math.round((now() - Date.parse(moment)) / 1000));
  const count = (number) => number.toLocaleString("en", { maximumFractionDigits: 0 });
  const several = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
  const percent = (share) => `${(100 * share).toFixed(share && share < 0.1 ? 1 : 0)} %`;
  const digits = (value) => (Math.abs(value) >= 1000 ? count(value) : String(Number(value.toPrecision(3))));
  function bytes(value, unit) {
    const power = Math.min(5, Math.max(0, Math.floor(Math.log10(Math.max(value, 1)) / 3)));
    return `${digits(value / 1000 ** power)} ${["", "k", "M", "G", "T", "P"][power]}${unit}`;
  }
  function valued(value, unit) {
    if (unit === "share") return percent(value);
    if (unit === "B/s") return bytes(value, unit);
    return unit && unit !== "tokens/s" ? `${digits(value)} ${unit}` : digits(value);
  }
  function lasting(seconds) {
    if (seconds < 120) return `${seconds} s`;
    const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
    if (minutes < 60) return `${minutes} min`;
    return days < 2 ? `${hours} h ${minutes % 60} min` : `${days} d ${hours % 24} h`;
  }
  function clock(moment) {
    const text = new Date(Date.parse(moment)).toISOString(), today = new Date(now()).toISOString();
    return text.slice(0, 10) === today.slice(0, 10) ? text.slice(11, 19) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
  }
  function usd(sum) {
    if (!sum || !sum.usd) return "unknown";
    const [low, high] = [sum.usd.low, sum.usd.high].map((value) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }));
    return `${sum.incomplete.length ? "at least " : ""}${low === high ? low : `${low} – ${high}`} USD`;
  }
  // The link and the table row that had the focus have it again.
  function keepingFocus(render) {
    const key = document.activeElement && document.activeElement.dataset.key;
    render();
    if (key && document.activeElement.dataset.key !== key) {
      const again = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
      if (again) again.focus({ preventScroll: true });
    }
  }
  function linkTo(id, from) {
    const link = element("a", { href: `#job/${id}`, textContent: id });
    link.dataset.key = `${from}-${id}`;
    return link;
  }
  const isJob = (id) => JOB.test(`#job/${id}`);  // `17_[1-9]` are tasks of an array that wait
  const jobCell = (id, from) => element("th", { scope: "row" }, isJob(id) ? linkTo(id, from) : id);
  const cell = (text, className = "") => element("td", { className, textContent: text });
  const card = (name, value, more) => element("div", {}, element("dt", { textContent: name }),
    element("dd", { textContent: value }), more ? element("dd", { className: "small", textContent: more }) : null);

  // The cluster
  function showCards() {
    const slurm = cluster.slurm, up = cluster.queues.flatMap((queue) => queue.nodes).filter((node) => node.kind !== "off").length;
    const all = cluster.queues.reduce((sum, queue) => sum + queue.nodes.length, 0);
    const account = cluster.answers.account, cost = cluster.answers.cost;
    const soFar = cluster.usd_so_far;
    at("cards").replaceChildren(
      card("nodes", slurm ? `${count(up)} of ${count(all)} up` : "unknown"),
      card("jobs", slurm ? `${count(slurm.running)} running` : "unknown", slurm ? `${count(slurm.waiting)} waiting` : ""),
      card("cost an hour", account.at ? usd(cluster.usd_per_hour) : "unknown", account.problem || (cluster.cluster_is_up === false ? "not up" : "")),
      card("cost so far", soFar ? usd(soFar) : "unknown", cost.problem || (soFar ? `since ${clock(soFar.since)} UTC` : "")),
      card("ends", cluster.ends_at ? ending(cluster.ends_at) : account.at ? "no end set" : "unknown"),
    );
  }
  function ending(moment) {
    const left = Math.round((Date.parse(moment) - now()) / 1000);
    return left > 0 ? `in ${lasting(left)}` : `expired ${lasting(-left)} ago`;
  }

  function showQueues() {
    const shown = new Map([...at("queues").children].map((one) => [one.dataset.queue, one]));
    const wanted = cluster.queues.map((queue) => {
      const section = shown.get(queue.name) || newQueue(queue);
      section.querySelector("h3 span").textContent = [queue.instance_type, queue.is_disabled ? "stopped: starts no jobs" : ""].filter(Boolean).join(", ");
      section.querySelector("p").textContent = Object.entries(queue.counts).map(([kind, number]) => `${count(number)} ${kind}`).join(", ") || "no nodes";
      showNodes(section.querySelector(".grid"), queue);
      return section;
    });
    if (wanted.length !== shown.size || wanted.some((one) => one.parentElement === null)) at("queues").replaceChildren(...wanted);
  }
  function newQueue(queue) {
    const grid = element("div", { className: "grid" });
    grid.setAttribute("role", "group");
    grid.setAttribute("aria-label", `Nodes of ${queue.name}`);
    grid.setAttribute("aria-describedby", "node-hint");
    grid.addEventListener("keydown", moveInGrid);
    grid.addEventListener("focusin", (event) => choose(event.target));
    grid.addEventListener("click", (event) => { if (event.target.dataset.jobs !== undefined) openOnlyJob(event.target); });
    const section = element("div", {}, element("h3", {}, `${queue.name} `, element("span")), element("p"), grid);
    section.dataset.queue = queue.name;
    return section;
  }
  function showNodes(grid, queue) {
    const held = new Map([...grid.children].map((one) => [one.dataset.node, one]));
    const nodes = queue.nodes.map((node) => {
      const button = held.get(node.name) || element("button", { type: "button", tabIndex: -1 });
      const [letter, words] = LETTERS[node.kind];
      const jobs = node.jobs.length ? `, job ${node.jobs.join(", ")}` : "";
      const label = `${node.name}: ${words}${jobs}`;
      if (button.getAttribute("aria-label") !== label || button.dataset.state !== node.state) {
        button.className = `node ${node.kind}`;
        button.textContent = letter;
        button.setAttribute("aria-label", label);
        Object.assign(button.dataset, { node: node.name, state: node.state, jobs: node.jobs.join(" "), words });
      }
      return button;
    });
    if (nodes.length !== held.size || nodes.some((one) => one.parentElement !== grid)) grid.replaceChildren(...nodes);
    if (nodes.length && !nodes.some((one) => one.tabIndex === 0)) nodes[0].tabIndex = 0;
    const focused = document.activeElement;
    if (focused && focused.parentElement === grid) choose(focused);
  }
  function choose(button) {
    if (button.dataset.node === undefined) return;
    for (const one of button.parentElement.querySelectorAll("[tabindex='0']")) one.tabIndex = -1;
    button.tabIndex = 0;
    const jobs = button.dataset.jobs.split(" ").filter(Boolean);
    const links = jobs.filter(isJob).flatMap((id, index) => [index ? ", " : " – job ", linkTo(id, "details")]);
    at("node-details").replaceChildren(element("strong", { textContent: button.dataset.node }), `: ${button.dataset.words} (${button.dataset.state})`, ...links);
  }
  function openOnlyJob(button) {
    const jobs = button.dataset.jobs.split(" ").filter(Boolean);
    if (jobs.length === 1 && isJob(jobs[0])) location.hash = `#job/${jobs[0]}`;
  }
  function moveInGrid(event) {
    const nodes = [...event.currentTarget.children], from = nodes.indexOf(document.activeElement);
    const perRow = nodes.findIndex((one) => one.offsetTop !== nodes[0].offsetTop), columns = perRow < 0 ? nodes.length : perRow;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -from, End: nodes.length - 1 - from };
    if (from < 0 || !(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const to = from + steps[event.key];
    if (to >= 0 && to < nodes.length) nodes[to].focus();
  }

  function showJobs() {
    const slurm = cluster.slurm;
    if (!slurm) {
      at("jobs-lead").textContent = "Unknown until the head answers.";
      return;
    }
    const all = slurm.running + slurm.waiting, hidden = all - slurm.jobs.length;
    at("jobs-lead").textContent = all ? `${count(slurm.running)} running, ${count(slurm.waiting)} waiting${hidden > 0 ? `; the first ${count(slurm.jobs.length)} are shown` : ""}` : "No jobs.";
    at("job-rows").replaceChildren(...slurm.jobs.map((one) => {
      const waits = one.state === "pending";
      const until = waits && one.until ? ` until ${clock(one.until)}` : "";
      const why = waits ? `waits for ${lasting(secondsSince(one.since))}${until}${one.reason ? `: ${one.reason}` : ""}` : `${one.nodes || "–"}, for ${lasting(secondsSince(one.since))}`;
      return element("tr", {}, jobCell(one.job_id, "job"), cell(one.user), cell(one.name, "name"), cell(one.queue), cell(one.state), cell(count(one.node_count), "number"), cell(why, "wide"));
    }));
  }
  function showOffers() {
    const held = cluster.offers.filter((one) => one.backoff).length;
    at("offers-lead").textContent = held ? `${several(held, "offer")} not used for now, because a launch failed.` : cluster.slurm ? "No offer backs off." : "";
    at("offer-rows").replaceChildren(...cluster.offers.map((one) => element("tr", {},
      element("th", { scope: "row", textContent: one.offer }), cell(one.queue || "–"), cell(one.market || "–"),
      cell(one.machines === null ? "?" : count(one.machines), "number"),
      one.backoff ? cell(`until ${clock(one.backoff.until)}: ${one.backoff.reason} (${one.backoff.kind})`, "wide warned") : cell("–"))));
  }
  function showEvents() {
    at("events-lead").textContent = cluster.events.length ? "" : cluster.slurm ? "None in the last day." : "Unknown until the head answers.";
    at("event-rows").replaceChildren(...cluster.events.map((one) => element("tr", {},
      element("th", { scope: "row", textContent: clock(one.at) }), cell(one.kind), cell(one.text, "wide"))));
  }
  function showCluster() {
    at("title").textContent = `${cluster.environment}, ${cluster.region}`;
    keepingFocus(() => { showCards(); showQueues(); showJobs(); showOffers(); showEvents(); });
  }

  // Whether what is shown is the present
  function showState() {
    const state = at("state"), head = cluster && cluster.answers.head;
    const age = head && head.at ? secondsSince(head.at) : null;
    const isStale = Boolean(head) && (head.problem !== null || (age !== null && age > Math.max(LEAST_STALE_S, 3 * head.every_s)));
    let name = "waiting", text = "Waiting for the head's first answer.";
    if (isLost) [name, text] = ["lost", `corral dashboard does not answer: was it ended?${age === null ? "" : ` This is ${lasting(age)} old.`}`];
    else if (isStale) [name, text] = ["stale", `${age === null ? "No answer of the head yet" : `Last answer of the head ${lasting(age)} ago`}${head.problem ? `: ${head.problem}` : ""}`];
    else if (age !== null) {
      const autoscaler = cluster.slurm && cluster.slurm.autoscaler.problem;
      [name, text] = autoscaler ? ["stale", `The autoscaler ${autoscaler}`] : ["fresh", `Last answer of the head ${lasting(age)} ago`];
    }
    document.body.classList.toggle("old", isLost || isStale);
    state.className = name;
    if (state.textContent !== text) state.textContent = text;
    // Not each second to a screen reader.
    state.setAttribute("aria-live", name === "fresh" ? "off" : "polite");
    const left = cluster ? `${isLost || isStale ? "old: " : ""}${cluster.environment}` : "corral";
    document.title = shownJob ? `job ${shownJob}, ${left}` : `${left} dashboard`;
  }

  // A job
  function showJob() {
    const record = job.job, speed = job.speed, forecast = job.forecast;
    at("job-title").textContent = `Job ${record.job_id}${record.name ? `: ${record.name}` : ""}`;
    const each = record.gpus ? "GPU" : "process";
    const ran = record.started === null ? "not started" : lasting(Math.max(0, Math.round(((record.ended === null ? now() / 1000 : record.ended) - record.started))));
    at("job-cards").replaceChildren(...[
      card("state", record.state, [ran, record.runs > 1 ? `run ${record.runs}` : "", record.ended === null ? "" : `exit code ${record.exit_code}`].filter(Boolean).join(", ")),
      card("user", record.user, `queue ${record.queue}`),
      card("nodes", record.nodes || several(record.node_count, "node"), record.gpus ? several(record.gpus, "GPU") : ""),
      speed.tokens_per_s_per_gpu === null ? null : card(`tokens/s for each ${each}`, count(speed.tokens_per_s_per_gpu), forecast ? `forecast ${count(forecast.tokens_per_s_per_gpu)}` : ""),
      speed.mfu === null ? null : card("MFU", percent(speed.mfu), `forecast ${percent(forecast.mfu)}`),
      speed.forecast_share === null ? null : card("of the forecast", percent(speed.forecast_share), forecast.run ? `run ${forecast.run}` : ""),
      speed.step_s === null ? null : card("time of a step", valued(speed.step_s, "s")),
      job.gpu_utilization === null ? null : card("GPUs at work", percent(job.gpu_utilization), "mean of the last minutes"),
      speed.communication_share === null ? null : card("communication", percent(speed.communication_share), forecast ? `forecast ${percent(forecast.communication_share)}` : ""),
    ].filter(Boolean));
    at("finding-list").replaceChildren(...(job.findings.length ? job.findings.map((one) => element("div", {},
      element("h3", { className: "bad", textContent: one.title }),
      element("ul", {}, ...one.evidence.map((line) => element("li", { textContent: line }))),
      element("p", {}, element("strong", { textContent: "First: " }), one.first)))
      : [element("p", { className: job.curves.length ? "good" : "", textContent: "Nothing is wrong in what could be looked at." })]),
      ...(job.unknown.length ? [element("p", { textContent: `Unknown: ${job.unknown.join("; ")}.` })] : []),
      ...(job.problem ? [element("p", { textContent: `Missing: ${job.problem}.` })] : []));
    showHistory(job.history, record);
    at("curves-lead").textContent = job.curves.length ? "Of the first process: at most 600 lines of what the job itself has recorded." : "";
    at("curve-list").replaceChildren(...job.curves.map((one) => curve(one)));
    at("missing").replaceChildren(...job.missing.map((line) => element("li", { textContent: `No ${line}.` })));
    at("processes").hidden = !job.processes.length;
    at("processes-lead").textContent = job.processes.length < job.process_count ? `The slowest ${count(job.processes.length)} of ${count(job.process_count)}.` : "The slowest first.";
    at("process-rows").replaceChildren(...job.processes.map((one) => element("tr", {},
      element("th", { scope: "row", textContent: String(one.rank) }), cell(one.node), cell(valued(one.step_s, "s"), "number"), cell(valued(one.own_s, "s"), "number"),
      cell(percent(one.data_share), "number"), cell(one.communication_share === null ? "–" : percent(one.communication_share), "number"),
      cell(digits(one.tokens_per_s), "number"), cell([one.error, one.message].filter(Boolean).join(": ") || "–", "wide"))));
  }
  function showHistory(kept, record) {
    const has = kept.curves.length > 0;
    const part = kept.nodes < record.node_count ? `, of ${count(kept.nodes)} of its ${several(record.node_count, "node")}` : "";
    at("history-lead").textContent = has ? `From its start, as Prometheus has it: each point is of the ${lasting(kept.over_s)} before it${part}.` : "";
    at("history-problem").textContent = kept.problem || "";
    at("curve-legend").hidden = !has && !job.curves.length;
    const first = at(has ? "history-list" : "curve-list");
    if (first.previousElementSibling !== at("curve-legend")) first.before(at("curve-legend"));
    at("history-list").replaceChildren(...kept.curves.map((one) => curve(one, kept.since, kept.until)));
    at("history-missing").replaceChildren(...kept.missing.map((line) => element("li", { textContent: `No ${line}.` })));
    at("history-values").hidden = !has;
    if (!has) return;
    const heads = ["time (UTC)", ...kept.curves.map((one) => one.name)];
    at("history-head").replaceChildren(element("tr", {}, ...heads.map((name, index) => element("th", { scope: "col", className: index ? "number" : "", textContent: name }))));
    const times = [...new Set(kept.curves.flatMap((one) => one.points.map((point) => point[0])))].sort((one, other) => other - one);
    const values = kept.curves.map((one) => new Map(one.points));
    at("history-rows").replaceChildren(...times.map((time) => element("tr", {},
      element("th", { scope: "row", textContent: clock(new Date(1000 * time).toISOString()) }),
      ...kept.curves.map((one, index) => cell(known(values[index].get(time)) ? valued(values[index].get(time), one.unit) : "–", "number")))));
  }
  const known = (value) => value !== null && value !== undefined;
  // The points between which nothing is missing; a line joins no others.
  function parts(points) {
    const found = [[]];
    for (const point of points) {
      if (known(point[1])) found[found.length - 1].push(point);
      else if (found[found.length - 1].length) found.push([]);
    }
    return found.filter((part) => part.length);
  }
  // Round numbers around these two, three to five of them.
  function ticksOf(lowest, highest) {
    const least = (highest > lowest ? highest - lowest : 1) / 3, power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= 0.999 * least);
    const first = Math.floor(lowest / step), last = Math.max(first + 1, Math.ceil(highest / step - 1e-9));
    return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
  }
  function curve(one, since = one.points[0][0], until = one.points[one.points.length - 1][0]) {
    const [left, right, top, bottom] = [62, 352, 24, 130];
    const shown = parts(one.points), values = shown.flat().map((point) => point[1]);
    const lowest = Math.min(...values), highest = Math.max(...values);
    const all = one.forecast === null ? values : [...values, one.forecast];
    const ticks = ticksOf(one.name === "loss" ? lowest : Math.min(0, ...all), Math.max(...all, ...(one.top === null ? [] : [one.top])));
    const low = ticks[0], high = ticks[ticks.length - 1];
    const span = until - since || 1;
    const x = (time) => left + ((right - left) * (time - since)) / span, y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low);
    const hour = (time) => new Date(1000 * time).toISOString().slice(...(span > 72000 ? [5, 16] : span > 1200 ? [11, 16] : [11, 19])).replace("T", " ");
    const last = shown[shown.length - 1], [newestAt, newest] = last[last.length - 1];
    const now = newestAt === one.points[one.points.length - 1][0] ? valued(newest, one.unit) : `${valued(newest, one.unit)} at ${hour(newestAt)}, then nothing`;
    const spoken = [`${one.name}, ${hour(since)} to ${hour(until)} UTC: ${now} at the end`, `lowest ${valued(lowest, one.unit)}`, `highest ${valued(highest, one.unit)}`,
      ...(one.forecast === null ? [] : [`forecast ${valued(one.forecast, one.unit)}`]), ...(shown.length > 1 ? [several(shown.length - 1, "gap")] : [])];
    const picture = drawn("svg", { viewBox: "0 0 360 166", role: "img", "aria-label": spoken.join(", ") });
    for (const value of ticks) {
      picture.append(drawn("path", { class: "grid-line", d: `M${left} ${y(value)}H${right}` }));
      picture.append(drawn("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, valued(value, one.unit)));
    }
    picture.append(drawn("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }));
    if (one.unit === "tokens/s") picture.append(drawn("text", { x: left - 6, y: 11, "text-anchor": "end" }, one.unit));
    for (const [time, anchor] of [[since, "start"], [(since + until) / 2, "middle"], [until, "end"]]) {
      picture.append(drawn("path", { class: "axis", d: `M${x(time)} ${bottom}v4` }));
      picture.append(drawn("text", { x: x(time), y: bottom + 16, "text-anchor": anchor }, hour(time)));
    }
    picture.append(drawn("text", { x: right, y: bottom + 31, "text-anchor": "end" }, "time (UTC)"));
    for (const part of shown) {
      const places = part.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`);
      if (part.length > 1) picture.append(drawn("polyline", { class: "line", points: places.join(" ") }));
      else picture.append(drawn("circle", { class: "dot", r: 2.5, cx: x(part[0][0]), cy: y(part[0][1]) }));
    }
    if (one.forecast !== null) {
      picture.append(drawn("path", { class: "forecast", d: `M${left} ${y(one.forecast)}H${right}` }));
      picture.append(drawn("text", { class: "forecast-label", x: right, y: 11, "text-anchor": "end" }, `forecast ${valued(one.forecast, one.unit)}`));
    }
    return element("figure", {}, element("figcaption", {}, one.name, element("strong", { textContent: now })), picture);
  }
  function legendLine(name, words) {
    const picture = drawn("svg", { viewBox: "0 0 40 12", "aria-hidden": "true" });
    if (name) picture.append(drawn("path", { class: name, d: "M2 6H38" }));
    else picture.append(drawn("path", { class: "line", d: "M2 6H13M27 6H38" }));
    return element("li", {}, picture, words);
  }
  function showJobState(text, isOld) {
    at("job-state").textContent = text;
    at("job-state").className = isOld ? "bad" : "";
    at("job").classList.toggle("old-job", isOld && Boolean(job));
  }

  // Requests, one after the other
  async function read(path) {
    const response = await fetch(path, { cache: "no-store", redirect: "error" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    skewMs = Date.parse(response.headers.get("Date")) - Date.now();
    if (Math.abs(skewMs) < 2000) skewMs = 0;
    return response.text();
  }
  async function readCluster() {
    try {
      const text = await read("cluster.json");
      isLost = false;
      if (text !== clusterText) {
        clusterText = text;
        cluster = JSON.parse(text);
        showCluster();
      }
    } catch {
      isLost = true;
    }
    showState();
  }
  async function readJob() {
    const id = shownJob;
    if (!id) return;
    try {
      const text = await read(`job/${id}.json`);
      if (id !== shownJob) return;
      const found = JSON.parse(text);
      if (found.error) {
        showJobState(`${job ? `This is ${lasting(secondsSince(job.answered_at))} old: ` : ""}${found.error}`, true);
      } else {
        if (text !== jobText) {
          [jobText, job] = [text, found];
          keepingFocus(showJob);
        }
        showJobState(`Read ${lasting(secondsSince(job.answered_at))} ago`, false);
      }
      for (const one of ["job-cards", "findings", "history", "curves"]) at(one).hidden = !job;
      if (!job) at("processes").hidden = true;
    } catch {
      showJobState(job ? `This is ${lasting(secondsSince(job.answered_at))} old.` : "No answer.", true);
    }
  }
  function repeat(act, everyMs) {
    const loop = async () => {
      await act();
      setTimeout(loop, everyMs);
    };
    loop();
  }
  function route() {
    const found = JOB.exec(location.hash), next = found ? found[1] : "";
    if (next === shownJob) return;
    shownJob = next;
    [job, jobText] = [null, ""];
    at("cluster").hidden = Boolean(next);
    at("job").hidden = !next;
    if (next) {
      at("job-title").textContent = `Job ${next}`;
      showJobState("Reading what the head knows about it; this takes some seconds.", false);
      for (const one of ["job-cards", "findings", "history", "curves", "processes"]) at(one).hidden = true;
      at("job-title").focus();
      window.scrollTo(0, 0);
      readJob();
    } else if (location.hash) {
      const target = document.querySelector("#jobs a, #jobs .scroll");
      if (location.hash === "#jobs" && target) target.focus();
      at(location.hash.slice(1))?.scrollIntoView();
    }
    showState();
  }

  at("legend").append(...Object.entries(LETTERS).map(([kind, [letter, words]]) => element("li", {}, element("span", { className: `node ${kind}`, textContent: letter, ariaHidden: "true" }), words)));
  at("curve-legend").append(legendLine("line", "solid: measured"), legendLine("forecast", "dashed: forecast"), legendLine("", "no line: nothing was measured"));
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); at("content").focus(); });
  window.addEventListener("hashchange", route);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) readCluster(); });
  repeat(readCluster, CLUSTER_MS);
  repeat(readJob, JOB_MS);
  setInterval(showState, TICK_MS);
  route();
})();
