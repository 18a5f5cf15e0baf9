package kubelab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Storage of clusters with real nodes: a CSI driver whose volumes are files in the cluster's folder, behind loop devices. All nodes see
// all volumes. Volumes are in block or filesystem mode (ext4), and can be cloned; snapshots are handled by the snapshot controller and
// the sidecar of the CSI project, so that objects, events and finalizers are as they are elsewhere. A snapshot of a volume in block mode
// is of one moment only while nothing writes.
const (
	StorageClass       = "files"
	StorageClassWait   = "files-wait"   // binds when a pod is scheduled
	StorageClassRetain = "files-retain" // keeps volumes of deleted claims
	StorageClassFull   = "files-full"   // refuses each volume with FullMessage
	SnapshotClass      = "files"
	StorageDriver      = "files.kubelab.bragg.dev"
	FullMessage        = "pool files has no space left"
)

// driverSocket is the path of the driver's socket on a node.
const driverSocket = "/var/lib/kubelet/plugins/" + StorageDriver + "/csi.sock"

const storageManifests = `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: ` + StorageDriver + `}
spec: {attachRequired: false, podInfoOnMount: false, fsGroupPolicy: File, volumeLifecycleModes: [Persistent]}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: ` + StorageClass + `}
provisioner: ` + StorageDriver + `
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: ` + StorageClassWait + `}
provisioner: ` + StorageDriver + `
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: ` + StorageClassRetain + `}
provisioner: ` + StorageDriver + `
reclaimPolicy: Retain
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: ` + StorageClassFull + `}
provisioner: ` + StorageDriver + `
parameters: {fails: ` + FullMessage + `}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: ` + SnapshotClass + `}
driver: ` + StorageDriver + `
deletionPolicy: Delete
`

// startStorage starts the driver's controller and what makes snapshots. Nodes have the other half of the driver.
func (k *keeper) startStorage(ctx context.Context) error {
	programs := filepath.Dir(k.Programs.Kube)
	if err := k.kubectl(ctx, "", "create", "-f", filepath.Join(programs, "crds")); err != nil {
		return err
	}
	err := k.kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=150s", "crd/volumesnapshots.snapshot.storage.k8s.io",
		"crd/volumesnapshotclasses.snapshot.storage.k8s.io", "crd/volumesnapshotcontents.snapshot.storage.k8s.io")
	if err == nil {
		err = k.kubectl(ctx, storageManifests, "create", "-f", "-")
	}
	if err != nil {
		return fmt.Errorf("storage classes: %w", err)
	}
	config, socket := "--kubeconfig="+k.file("helpers.kubeconfig"), k.file("csi.sock")
	err = errors.Join(
		k.start("csi-driver", k.Programs.Kube, "csi-driver", config, "--folder="+k.file("storage"), "--endpoint="+socket),
		k.start("snapshot-controller", filepath.Join(programs, "snapshot-controller"), config, "--kube-api-qps=100", "--kube-api-burst=200",
			"--retry-interval-start=200ms"))
	if err == nil {
		err = waitFor(ctx, "the CSI driver", func() error {
			_, err := os.Stat(socket)
			return err
		})
	}
	if err != nil {
		return err
	}
	return k.start("csi-snapshotter", filepath.Join(programs, "csi-snapshotter"), config, "--csi-address="+socket, "--kube-api-qps=100",
		"--kube-api-burst=200", "--retry-interval-start=200ms")
}

// driverArguments are those of the driver's half of a node.
func (d *description) driverArguments(node string) []string {
	return []string{d.Programs.Kube, "csi-driver", "--node=" + node, "--folder=" + d.file("storage"), "--endpoint=" + driverSocket}
}
