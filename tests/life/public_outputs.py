"""What NCCL and PyTorch print, from public reports. Paths and prefixes of other tools are left out."""

from __future__ import annotations

# NVIDIA/nccl issue 527, a comment of taruntandon88: two p4d.24xlarge with NCCL 2.9.9 and aws-ofi-nccl 1.4.0.
OVER_EFA = """\
ip-10-216-178-255:416482:416482 [4] NCCL INFO Bootstrap : Using ens32:10.216.178.255<0>
ip-10-216-178-255:416482:416482 [4] NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v6 symbol.
ip-10-216-178-255:416482:416482 [4] NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin symbol (v4 or v5).
ip-10-216-178-255:416482:416525 [4] NCCL INFO NET/OFI Using aws-ofi-nccl 1.4.0aws
ip-10-216-178-255:416486:416524 [7] NCCL INFO NET/OFI Setting FI_EFA_FORK_SAFE environment variable to 1
ip-10-216-179-119:416602:416643 [1] NCCL INFO NET/OFI Selected Provider is efa
ip-10-216-179-119:416602:416643 [1] NCCL INFO Using network AWS Libfabric
"""

# aws/aws-ofi-nccl issue 889, praveen-aurora, 2025-05-16: p4d.24xlarge, NCCL 2.21.5. The plugin finds the devices, fails
# later, and NCCL goes on over TCP.
BACK_TO_TCP = """\
ip-10-36-29-253:82:2548 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)
ip-10-36-29-253:82:2548 [0] NCCL INFO NET/OFI Creating one domain per process
ip-10-36-29-253:82:2548 [0] platform_config_endpoint:626 NCCL WARN NET/OFI GDR disabled on GDR-supported instance type \
p4d.24xlarge
ip-10-36-29-253:82:2548 [0] nccl_net_ofi_domain_get_ep:969 NCCL WARN NET/OFI Creating new endpoint for domain \
0x7f7dc3a992c0 failed: Invalid argument
ip-10-36-29-253:82:2548 [0] nccl_net_ofi_create_plugin:335 NCCL WARN NET/OFI aws-ofi-nccl initialization failed
ip-10-36-29-253:82:2548 [0] nccl_net_ofi_init:155 NCCL WARN NET/OFI Initializing plugin failed
ip-10-36-29-253:82:2548 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
ip-10-36-29-253:82:2548 [0] NCCL INFO NET/IB : No device found.
ip-10-36-29-253:84:2553 [0] NCCL INFO NET/Socket : Using [0]eth0:10.36.29.253<0>
ip-10-36-29-253:84:2553 [0] NCCL INFO Using non-device net plugin version 0
ip-10-36-29-253:84:2553 [0] NCCL INFO Using network Socket
"""

# The same report, from where the plugin is given up.
TCP_ON_ONE_NODE = "".join(BACK_TO_TCP.splitlines(keepends=True)[-5:])

# awslabs/awsome-distributed-ai issue 386, kamal-rahimi, 2024-07-23: p5 machines without EFA in the container.
CHANNELS_OVER_TCP = """\
ini-worker-ray-worker-p5:944:3818 [0] NCCL INFO Channel 13/0 : 0[0] -> 8[0] [receive] via NET/Socket/0
ini-worker-ray-worker-p5:944:3818 [0] NCCL INFO Channel 14/0 : 0[0] -> 8[0] [receive] via NET/Socket/0
ini-worker-ray-worker-p5:944:3818 [0] NCCL INFO Channel 15/0 : 0[0] -> 8[0] [receive] via NET/Socket/0
ini-worker-ray-worker-p5:944:3818 [0] NCCL INFO Channel 15/0 : 8[0] -> 0[0] [send] via NET/Socket/0
ini-worker-ray-worker-p5:955:3838 [4] NCCL INFO Connected all trees
"""

# carolchenyx/MGFN. issue 35, venkat19-spec, 2023-11-21.
CUDA_OUT_OF_MEMORY = """\
CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total capacty of 6.00 GiB of which 0 bytes is free. \
Of the allocated memory 2.93 GiB is allocated by PyTorch, and 2.30 GiB is reserved by PyTorch but unallocated. \
If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  \
See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF
"""

# zhou13/lcnn issue 23, threefruits, 2020-02-18: PyTorch before it had an error of its own for that.
OLD_CUDA_OUT_OF_MEMORY = """\
CUDA out of memory. Tried to allocate 96.00 MiB (GPU 0; 5.81 GiB total capacity; 4.66 GiB already allocated; \
77.50 MiB free; 4.68 GiB reserved in total by PyTorch)
"""
