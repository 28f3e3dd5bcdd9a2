"""One real node: kubelet, containerd, kube-proxy and the controllers, in namespaces that end with the process that
started it.

`node` is the test's side of it, `keeper` holds the namespaces and outlives the test by a moment to clear up, and
`inside` is the program within them. Nothing in there can write to a device of the machine: see `mounts`.
"""
