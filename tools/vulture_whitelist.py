"""Names that vulture takes for unused, with their users. `make lint` reads it. Delete lines without a use."""

# Called by a library that gets the class.
_.request_queue_size  # socketserver reads it
_.protocol_version  # http.server reads it
_.trailing_metadata  # grpc reads it of a status
_.disable_nagle_algorithm  # socketserver reads it
_.log_request  # http.server calls it
_.log_message  # http.server calls it
_.close_connection  # http.server reads it
_.copyfile  # http.server calls it
_.daemon_threads  # socketserver reads it
_.do_CONNECT  # http.server calls it
_.do_DELETE  # http.server calls it
_.do_GET  # http.server calls it
_.do_HEAD  # http.server calls it
_.do_OPTIONS  # http.server calls it
_.do_POST  # http.server calls it
_.do_PUT  # http.server calls it
_.address_string  # http.server calls it
_.rcode  # dnslib writes it into the answer
_.find_class  # pickle calls it
_.reducer_override  # pickle calls it
_.list_commands  # click calls it
_.get_help  # click calls it
_.ctx  # click passes it by this name
_.fmt  # botocore formats the error with it
_.model_config  # pydantic reads it
_.RFC2307  # a spec declares it
_.platform_types  # moto reads it
_.extraction_filter  # tarfile reads it
_.handle_starttag  # html.parser calls it
_.handle_endtag  # html.parser calls it
_.new_resource  # Pulumi's mocks call it
_.real_python  # fixture
_.answers_of_the_model  # pytest calls it for every test
_.owners_of_buckets  # the same

# Methods of Pulumi's protocols, called by the engine.
_.GetPluginInfo  # ResourceProvider
_.Attach  # ResourceProvider
_.Cancel  # ResourceProvider
_.GetSchema  # ResourceProvider
_.CheckConfig  # ResourceProvider
_.DiffConfig  # ResourceProvider
_.Configure  # ResourceProvider
_.Create  # ResourceProvider
_.Read  # ResourceProvider
_.Update  # ResourceProvider
_.Invoke  # ResourceProvider
_.Handshake  # LanguageRuntime
_.GetRequiredPackages  # LanguageRuntime
_.GetRequiredPlugins  # LanguageRuntime
_.InstallDependencies  # LanguageRuntime
_.RuntimeOptionsPrompts  # LanguageRuntime
_.GetProgramDependencies  # LanguageRuntime
_.About  # LanguageRuntime

# Called or read by moto in its models, or overridden from it.
_.prep_nics  # BoxInstance: moto calls it of an instance
_.public_ip_address  # BoxInstance: moto's response contains it
_._subnet_id  # BoxInstance: moto reads it for an instance without interfaces
_.spot_instance_request_id  # moto's response contains it
_.instance_owner_id  # moto's response contains it of an interface
_.requester_managed  # moto's response contains it of an interface
_._get_instance_ids_from_targets  # BoxCommand: moto calls it of a command
_._created_at  # moto's response contains it of a NAT gateway
_.ip_address_type  # moto's response contains it of an endpoint
_.available_ip_address_count  # moto's response contains it of a subnet
_.life_cycle_state  # moto's response contains it of a mount target
_.request_ip  # moto calls it to get an address of a subnet
_.provisioned_throughput_in_mibps  # moto's response contains it of a file system
_.automated_parameter_parsing  # moto reads it of a response
_.get_filter_value  # moto's filters call it of what is listed
_.get_permission  # moto calls it of a bucket
_.get_instance_by_id  # moto calls it of its backend
_.attach_network_interface  # moto calls it of its backend
_._load_amis  # moto calls it of its backend
_.block_device_mappings  # moto's response contains it of an image
_.tags_per_page  # moto passes it by this name
_.__class__  # an object of moto's becomes one of ours

# AWS API calls, which the box dispatches by name.
_.update_budget  # budgets
_.create_notification  # budgets
_.update_notification  # budgets
_.delete_notification  # budgets
_.describe_notifications_for_budget  # budgets
_.create_subscriber  # budgets
_.update_subscriber  # budgets
_.delete_subscriber  # budgets
_.describe_subscribers_for_notification  # budgets
_.describe_capacity_blocks  # EC2
_.get_console_output  # EC2
_.reboot_instances  # EC2
_.detach_network_interface  # EC2
_.describe_instance_type_offerings  # EC2
_.modify_capacity_reservation  # EC2
_.cancel_capacity_reservation  # EC2
_.describe_spot_price_history  # EC2
_.get_spot_placement_scores  # EC2
_.delete_launch_template_versions  # EC2
_.describe_instance_topology  # EC2
_.create_backup  # FSx
_.describe_backups  # FSx
_.list_document_versions  # SSM
_.simulate_principal_policy  # IAM
_.simulate_custom_policy  # IAM
_.decode_authorization_message  # STS
_.describe_regions  # EC2
_.get_products  # price list
_.list_service_quotas  # Service Quotas
_.list_aws_default_service_quotas  # Service Quotas
_.get_service_quota  # Service Quotas
_.get_aws_default_service_quota  # Service Quotas

# Fields of the catalog's files, which a project may set for its own types, and which docs/catalog.md shows.
_.nvme_gb_each  # docs/catalog.md
_.gb_each  # the same, in a project's file
_.network_burst_mbps_per_tib  # docs/catalog.md
_.disk_read_burst_mbps_per_tib  # docs/catalog.md
_.disk_write_burst_mbps_per_tib  # docs/catalog.md

# Enum members that are created from a word of a file or an option.
_.PROPRIETARY  # KernelModules, from images.toml or `image.kernel_modules`
_.VERIFIED  # Trust, a column of the price files
_.PRICE_LIST  # Trust, prices.csv
_.HARDWARE  # Cause, reliability.toml
_.SOFTWARE  # Cause, reliability.toml
_.MAINTENANCE  # Cause, reliability.toml
_.GRES  # ConfSection, slurm_conf.toml
_.CGROUP  # ConfSection, slurm_conf.toml
_.TOPOLOGY  # ConfSection, slurm_conf.toml
_.RESUME  # ConfSection, slurm_conf.toml
_.LINES  # Type, slurm_values.toml
_.HELD_OUT  # Table, `corral forecast validate --table`

# Fields that are read by name, or by a template.
_.updated  # StackResult, in `--json`
_.stragglers  # StepParts, whose sum is over all fields
_.bundle_key  # BootFacts, in fetch.py
_.library_key  # BootFacts, in fetch.py
_.security_group  # Deployed, in deployed.json
_.head_interface  # Deployed, in deployed.json
_.caption  # Table, in report/plan.html.j2
_.pictures  # Section, in report/plan.html.j2
_.whole_name  # Line, in report/timeline.svg.j2
_.last_at, _.slow_step_s, _.memory_reserved  # RankSteps, in `diagnose --json`
_.utilization  # GpuSamples, in the head's report

# What training programs call of job_library/corral_step.py; hooks that Lightning and Hugging Face's Trainer call.
_.batches, _.lightning_callback, _.hugging_face_callback
_.trainer, _.pl_module, _.batch_idx
_.on_train_start, _.on_train_batch_start, _.on_train_batch_end, _.on_train_end, _.on_exception
_.on_validation_start, _.on_validation_end, _.on_save_checkpoint
_.on_train_begin, _.on_step_begin, _.on_step_end, _.on_log, _.on_evaluate, _.on_save
_.without_a_job, _.system_python  # fixtures

# What http.server calls and reads of a handler and a server.
_.do_GET, _.do_HEAD, _.do_POST, _.do_PUT, _.do_PATCH, _.do_DELETE, _.do_OPTIONS, _.log_message
_.server_bind, _.server_name, _.handle_error, _.client_address, _.allow_reuse_address, _.server_version, _.sys_version
client_address

# Names that pytest looks for, and arguments of tests.
_.pytestmark  # marks every test of a module
_.pytest_addoption  # hook
_.pytest_collection_finish  # hook
_.pytest_collection_modifyitems  # hook
_.pytest_configure  # hook
_.pytest_report_header  # hook
_.pytest_runtest_logreport  # hook
_.pytest_collectreport  # hook
_.pytest_sessionfinish  # hook
_.pytest_terminal_summary  # hook
_.labels  # a field of a record that goes to JSON and back
_.describe_things  # a call of a client that answers none of them

# Replacements for ParallelCluster's AWS calls, in benchmarks.
_.get_instance_type_info  # ParallelCluster calls it
_.describe_image  # ParallelCluster calls it
_.aws_region  # ParallelCluster reads it
_.source_config  # ParallelCluster reads it

# Data of the product that templates and documentation read.
_.first_command  # templates/monitoring/alerts.yml.j2
_.holds_for  # templates/monitoring/alerts.yml.j2
head_metrics  # tools.docs.monitoring lists them
node_metrics  # as well
_.DBD  # a section that settings in slurm_conf.toml name
_.user_agent_extra  # botocore sends it
