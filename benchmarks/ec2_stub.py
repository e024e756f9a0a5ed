"""A stand-in for EC2: a prepared response to DescribeInstances, and an empty one to everything else.

The fields of an instance are those that EC2 returns for one interface and one volume. It keeps no state.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

_XMLNS = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'
_INSTANCE = """<item><instanceId>{id}</instanceId><imageId>ami-1</imageId><instanceState><code>16</code>
<name>running</name></instanceState><privateDnsName>ip-{dashed}.ec2.internal</privateDnsName><dnsName/><reason/><amiLaunchIndex>{index}
</amiLaunchIndex><productCodes/><instanceType>c7i.large</instanceType><launchTime>2026-11-21T20:00:00.000Z</launchTime>
<placement><availabilityZone>us-east-1b</availabilityZone><groupName/><tenancy>default</tenancy></placement><monitoring>
<state>disabled</state></monitoring><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId><privateIpAddress>{address}
</privateIpAddress><sourceDestCheck>true</sourceDestCheck><groupSet><item><groupId>sg-1</groupId><groupName>nodes
</groupName></item></groupSet><architecture>x86_64</architecture><rootDeviceType>ebs</rootDeviceType><rootDeviceName>
/dev/sda1</rootDeviceName><blockDeviceMapping><item><deviceName>/dev/sda1</deviceName><ebs><volumeId>vol-1</volumeId>
<status>attached</status><attachTime>2026-11-21T20:00:01.000Z</attachTime><deleteOnTermination>true
</deleteOnTermination></ebs></item></blockDeviceMapping><virtualizationType>hvm</virtualizationType><clientToken>t
</clientToken><tagSet>{tags}</tagSet><hypervisor>xen</hypervisor><networkInterfaceSet><item><networkInterfaceId>eni-1
</networkInterfaceId><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId><description/><ownerId>1</ownerId><status>in-use
</status><macAddress>02:00:00:00:00:01</macAddress><privateIpAddress>{address}</privateIpAddress><attachment>
<attachmentId>eni-attach-1</attachmentId><deviceIndex>0</deviceIndex><networkCardIndex>0</networkCardIndex><status>
attached</status><attachTime>2026-11-21T20:00:00.000Z</attachTime></attachment></item></networkInterfaceSet>
<ebsOptimized>false</ebsOptimized><metadataOptions><state>applied</state><httpTokens>required</httpTokens>
</metadataOptions></item>""".replace("\n", "")


def describe_instances_response(instances: Mapping[str, str], tags: Mapping[str, str]) -> str:
    """The response of DescribeInstances for instances of one launch, given as id -> address."""
    tag_items = "".join(f"<item><key>{key}</key><value>{value}</value></item>" for key, value in tags.items())
    items = "".join(
        _INSTANCE.format(id=name, address=address, dashed=address.replace(".", "-"), index=index, tags=tag_items)
        for index, (name, address) in enumerate(instances.items())
    )
    launch = f"<item><reservationId>r-1</reservationId><instancesSet>{items}</instancesSet></item>"
    return f"<DescribeInstancesResponse {_XMLNS}><reservationSet>{launch}</reservationSet></DescribeInstancesResponse>"


@contextmanager
def running_ec2(text: str) -> Iterator[str]:
    """The URL of a running stand-in with this response to DescribeInstances."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            action = request.get("Action", ["Nothing"])[0]
            empty = f"<{action}Response {_XMLNS}><return>true</return></{action}Response>"
            body = (text if action == "DescribeInstances" else empty).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
