package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// claims are the disks of VMs: one PersistentVolumeClaim each.
type claims struct {
	cluster *cluster
	mirror  *api.Mirror[corev1.PersistentVolumeClaim]
	bindMax time.Duration
	goneMax time.Duration
	look    time.Duration // when a claim without a volume makes this program read its events
}

func newClaims(c *cluster) *claims {
	return &claims{
		cluster: c, mirror: api.NewMirror[corev1.PersistentVolumeClaim](c.client, api.Claims, object.Ours),
		bindMax: min(c.settings.patience, claimBindMax), goneMax: max(min(c.settings.patience, claimGoneMax), stopLeast), look: min(c.settings.patience/5, claimLook),
	}
}

const (
	claimBindMax = 5 * time.Minute
	claimGoneMax = 5 * time.Minute
	// A provisioner that failed repeats forever.
	claimLook = 20 * time.Second
)

// selectedNode makes the provisioner of a class with late binding provide the volume for a node before the first pod uses it, as
// the scheduler would: a VM has its disks from its creation on, so that they can be cloned, and a full pool is found at once.
const selectedNode = "volume.kubernetes.io/selected-node"

// fileSystemExtra is added to a volume with a file system, for its metadata and journal.
func fileSystemExtra(size int64) int64 { return size/16 + 64<<20 }

// claim describes the claim of disk i. from is the source of its content; nil: an empty volume.
func (c *claims) claim(r object.Record, tag object.Owner, i int, from *corev1.TypedLocalObjectReference) *corev1.PersistentVolumeClaim {
	size, mode := r.VM.Disks[i].SizeBytes, corev1.PersistentVolumeBlock
	if !r.Block {
		size, mode = size+fileSystemExtra(size), corev1.PersistentVolumeFilesystem
	}
	p := &corev1.PersistentVolumeClaim{ObjectMeta: r.Meta(r.DiskName(i), tag)}
	p.Annotations[selectedNode] = r.VM.NodeID
	p.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode, DataSource: from,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)}},
	}
	if class := c.cluster.settings.class; class != "" {
		p.Spec.StorageClassName = &class
	}
	return p
}

// make makes the claims of a VM and waits until all have volumes. from may be nil, or has the source of each disk.
func (c *claims) make(ctx context.Context, r object.Record, tag object.Owner, from []*corev1.TypedLocalObjectReference) error {
	for i := range r.VM.Disks {
		var source *corev1.TypedLocalObjectReference
		if from != nil {
			source = from[i]
		}
		_, err := api.Create(ctx, c.cluster.client, api.Claims, c.claim(r, tag, i, source), func(p *corev1.PersistentVolumeClaim) bool {
			return object.MarkOf(p) == tag.Mark && p.Labels[object.LabelVM] == r.VM.ID
		})
		if err != nil {
			return err
		}
	}
	for i := range r.VM.Disks {
		if err := c.bound(ctx, r.DiskName(i)); err != nil {
			return fmt.Errorf("disk %s: %w", r.VM.Disks[i].Device, err)
		}
	}
	return nil
}

// bound waits until a claim has a volume, and reports what the cluster says where it does not get one.
func (c *claims) bound(ctx context.Context, name string) error {
	var uid string
	look := func(o *api.Seen[corev1.PersistentVolumeClaim]) (bool, error) {
		switch {
		case o == nil:
			return false, nil
		case o.Object.Status.Phase == corev1.ClaimLost:
			return false, fmt.Errorf("claim %q lost its volume", name)
		}
		uid = o.UID
		return o.Object.Status.Phase == corev1.ClaimBound, nil
	}
	began := time.Now()
	for {
		slice, cancel := context.WithTimeout(ctx, min(c.look, c.bindMax))
		err := c.mirror.Await(slice, name, look)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		said := c.cluster.events(ctx, uid)
		if failed := said.of("ProvisioningFailed", "FailedBinding"); failed == "" && time.Since(began) < c.bindMax {
			continue
		}
		return &diag.Error{
			Code: "kube-claim-pending", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("claim %q has no volume after %s: %s", name, time.Since(began).Round(time.Second), said),
			Hint:    fmt.Sprintf("kubectl -n %s describe pvc %s; the storage class is the target file's pool", c.cluster.client.Namespace, name),
		}
	}
}

// of lists the claims of VMs by the id of their VM.
func (c *claims) of(ctx context.Context, mark string) (map[string][]api.Seen[corev1.PersistentVolumeClaim], error) {
	all, err := c.mirror.All(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string][]api.Seen[corev1.PersistentVolumeClaim]{}
	for _, p := range all {
		if object.MarkOf(&p.Object) == mark {
			id := p.Object.Labels[object.LabelVM]
			by[id] = append(by[id], p)
		}
	}
	return by, nil
}

// remove deletes claims and waits until they are gone: until the last pod that uses them is.
func (c *claims) remove(ctx context.Context, list []api.Seen[corev1.PersistentVolumeClaim]) error {
	for _, p := range list {
		if err := c.cluster.client.Delete(ctx, api.Claims, p.Name, p.Object.UID, -1); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.goneMax)
	defer cancel()
	for _, p := range list {
		err := c.mirror.Await(ctx, p.Name, func(o *api.Seen[corev1.PersistentVolumeClaim]) (bool, error) { return o == nil || o.UID != p.UID, nil })
		if errors.Is(err, context.DeadlineExceeded) {
			return &diag.Error{
				Code: "kube-claim-stays", Exit: diag.ExitUnavailable, Err: err,
				Message: fmt.Sprintf("claim %q was deleted and is still there after %s", p.Name, c.goneMax),
				Hint:    "a pod may use it, or its driver does not answer: kubectl describe pvc " + p.Name,
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
