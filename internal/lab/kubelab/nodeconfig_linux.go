package kubelab

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/lab/cable"
)

const (
	pluginDir        = "/usr/lib/cni" // of containernetworking-plugins
	containerdSocket = "/run/containerd/containerd.sock"
	containerdSpace  = "k8s.io" // containerd's namespace of kubelets
)

// tunables are settings of the whole machine that a kubelet changes, and the values that it wants. It gets to see these, so that it
// changes none.
var tunables = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// snapshotter is overlayfs, unless the folder is on an overlay itself, which cannot be an upper layer.
func snapshotter(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native"
	}
	return "overlayfs"
}

// importArguments are those of ctr for the archive of an image.
func importArguments(dir, path string) []string {
	return []string{"/usr/bin/ctr", "--address=" + containerdSocket, "--namespace=" + containerdSpace, "images", "import", "--snapshotter=" + snapshotter(dir), path}
}

// containerdConfig restricts oom_score_adj because a container without CAP_SYS_RESOURCE cannot lower it, and runc does not say so. The
// plugin "opt" would make a folder in /opt.
func (d *description) containerdConfig(dir string) string {
	return fmt.Sprintf(`version = 2
root = %q
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
address = %q
[debug]
level = "warn"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = %q
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %q
conf_dir = %q
`, filepath.Join(dir, "containerd"), containerdSocket, BusyboxImage, snapshotter(dir), pluginDir, filepath.Join(dir, "cni"))
}

// kubeletConfig switches off what would need iptables, a guest's file system of its own, or would evict pods from a full machine. No DNS answers;
// without an address of it each pod would get a warning.
func (d *description) kubeletConfig(name string) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: %q}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%s
cgroupDriver: cgroupfs
cgroupRoot: /%s/%s
failCgroupV1: false
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
resolvConf: %q
clusterDNS: [%s]
volumePluginDir: /run/kubelet-volume-plugins
serializeImagePulls: false
syncFrequency: 10s
`, d.file("ca.crt"), containerdSocket, groupName(d.ID), name, filepath.Join(d.nodeDir(name), "resolv.conf"), d.apiAddress())
}

// networkConfig connects pods with the node's bridge, which reaches all others. Addresses are given out again after a boot.
func (d *description) networkConfig(number int) string {
	first := (number + 1) * podsOfNode
	text, _ := json.Marshal(map[string]any{ // it has nothing that cannot be encoded
		"cniVersion": "0.4.0", "name": "cluster",
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": bridgeName, "isGateway": false, "ipMasq": false,
			"ipam": map[string]any{
				"type": "host-local", "dataDir": "/run/cni-addresses", "routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
				"ranges": []any{[]any{map[string]any{
					"subnet": d.Subnet.String(), "gateway": d.apiAddress().String(),
					"rangeStart": cable.Nth(d.Subnet, first+1).String(), "rangeEnd": cable.Nth(d.Subnet, first+podsOfNode-2).String(),
				}}},
			},
		}},
	})
	return string(text)
}
