package kubelab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab/kubelab"
)

// claim makes a claim of 32 MiB. The source is a line of YAML or empty.
func claim(t *testing.T, c *kubelab.Cluster, ns, name, mode, source string) {
	t.Helper()
	c.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, namespace: %s}
spec:
  storageClassName: %s
  accessModes: [ReadWriteOnce]
  volumeMode: %s
  resources: {requests: {storage: 32Mi}}
  %s
`, name, ns, kubelab.StorageClass, mode, source))
}

// volumes are the lines of a pod for a claim: a file system at /data, or a device at /dev/data.
func volumes(claim, mode string) string {
	at := "    volumeMounts: [{name: v, mountPath: /data}]"
	if mode == "Block" {
		at = "    volumeDevices: [{name: v, devicePath: /dev/data}]"
	}
	return at + fmt.Sprintf("\n  volumes: [{name: v, persistentVolumeClaim: {claimName: %s}}]", claim)
}

// Volumes keep their data in snapshots, volumes made from those, and clones, in both modes. Another node has the same volume.
func TestVolumes(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	for _, v := range []struct{ mode, write, change, read string }{
		{
			"Filesystem", "echo first > /data/x; sync", "echo second > /data/x; sync", "cat /data/x",
		},
		{
			"Block", "echo first | dd of=/dev/data bs=512 conv=sync,fsync", "echo second | dd of=/dev/data bs=512 conv=sync,fsync",
			"dd if=/dev/data bs=512 count=1 2>/dev/null | head -n 1",
		},
	} {
		t.Run(v.mode, func(t *testing.T) {
			t.Parallel()
			ns := c.Namespace(t)
			in := func(pod, command string) string {
				return strings.TrimSpace(c.Kubectl(t, "exec", "-n", ns, pod, "--", "sh", "-c", command))
			}
			claim(t, c, ns, "data", v.mode, "")
			pod(t, c, ns, "writer", c.Nodes[0].Name, volumes("data", v.mode))
			in("writer", v.write)
			c.Apply(t, fmt.Sprintf("apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: s, namespace: %s}\n"+
				"spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: data}}\n", ns, kubelab.SnapshotClass))
			c.Kubectl(t, "wait", "-n", ns, "volumesnapshot/s", "--for=jsonpath={.status.readyToUse}=true", "--timeout=150s")
			in("writer", v.change)
			claim(t, c, ns, "restored", v.mode, "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s}")
			claim(t, c, ns, "cloned", v.mode, "dataSource: {kind: PersistentVolumeClaim, name: data}")
			for name, want := range map[string]string{"restored": "first", "cloned": "second"} {
				pod(t, c, ns, name, c.Nodes[1].Name, volumes(name, v.mode))
				if got := in(name, v.read); got != want {
					t.Errorf("the %s volume has %q, want %q", name, got, want)
				}
			}
			c.Kubectl(t, "delete", "pod", "writer", "-n", ns, "--grace-period=1")
			pod(t, c, ns, "mover", c.Nodes[1].Name, volumes("data", v.mode))
			if got := in("mover", v.read); got != "second" {
				t.Errorf("on the other node the volume has %q", got)
			}
		})
	}
}

// A storage that is full says so in an event of the claim.
func TestFullStorage(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	ns := c.Namespace(t)
	c.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p, namespace: %s}\n"+
		"spec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 32Mi}}}\n", ns, kubelab.StorageClassFull))
	for {
		events := c.Kubectl(t, "get", "events", "-n", ns, "-o", "jsonpath={.items[?(@.reason==\"ProvisioningFailed\")].message}")
		if strings.Contains(events, kubelab.FullMessage) {
			return
		}
		if events != "" {
			t.Fatalf("events %q", events)
		}
	}
}

// Volumes are gone with their claims, and their loop devices with the pods.
func TestVolumesAreRemoved(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	ns := c.Namespace(t)
	claim(t, c, ns, "data", "Filesystem", "")
	pod(t, c, ns, "p", c.Nodes[0].Name, volumes("data", "Filesystem"))
	volume := c.Kubectl(t, "get", "-n", ns, "pvc/data", "-o", "jsonpath={.spec.volumeName}")
	c.Kubectl(t, "delete", "-n", ns, "pod/p", "pvc/data", "--grace-period=1", "--timeout=150s")
	c.Kubectl(t, "wait", "pv/"+volume, "--for=delete", "--timeout=150s")
}
