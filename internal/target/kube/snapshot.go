package kube

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
)

// volumeSnapshot is what this program writes and reads of snapshot.storage.k8s.io/v1.
type volumeSnapshot struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Source struct {
			Claim string `json:"persistentVolumeClaimName"`
		} `json:"source"`
		Class *string `json:"volumeSnapshotClassName,omitempty"`
	} `json:"spec"`
	Status *struct {
		Ready *bool `json:"readyToUse"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	} `json:"status,omitempty"`
}

// snapshots are those of claims, by the driver of their storage. They end with their VM.
type snapshots struct {
	cluster *cluster
	class   string // "": the default of the driver
	mirror  *api.Mirror[volumeSnapshot]
	readyIn time.Duration
}

const (
	snapshotReadyMax = 5 * time.Minute
	snapshotNote     = "bragg.dev/snapshot" // the name by the scenario
)

func newSnapshots(c *cluster, class string) *snapshots {
	return &snapshots{cluster: c, class: class, mirror: api.NewMirror[volumeSnapshot](c.client, api.Snapshots, ours), readyIn: snapshotReadyMax}
}

// offered reports whether the cluster has snapshots, and the user may take them.
func (s *snapshots) offered(ctx context.Context) (bool, error) {
	err := s.mirror.Start(ctx)
	if api.NotFound(err) || api.Forbidden(err) {
		return false, nil
	}
	return err == nil, err
}

// take takes snapshots of all disks of a VM, one after the other, and waits until they can be used. It returns their names.
func (s *snapshots) take(ctx context.Context, r record, tag owner, name string) ([]string, error) {
	taken := make([]string, len(r.VM.Disks))
	var random [4]byte
	_, _ = rand.Read(random[:])
	for i := range r.VM.Disks {
		var one volumeSnapshot
		taken[i] = r.diskName(i) + "-" + hex.EncodeToString(random[:])
		one.ObjectMeta = r.meta(taken[i], tag)
		one.Annotations[snapshotNote] = api.Words(name)
		one.Spec.Source.Claim = r.diskName(i)
		if s.class != "" {
			one.Spec.Class = &s.class
		}
		_, err := api.Create(ctx, s.cluster.client, api.Snapshots, &one, func(o *volumeSnapshot) bool { return markOf(o) == tag.mark })
		if err != nil {
			return nil, err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, s.readyIn)
	defer cancel()
	for _, name := range taken {
		var last *api.Seen[volumeSnapshot]
		err := s.mirror.Await(bounded, name, func(o *api.Seen[volumeSnapshot]) (bool, error) {
			if o == nil || o.Object.Status == nil {
				return false, nil
			}
			last = o
			return o.Object.Status.Ready != nil && *o.Object.Status.Ready, nil
		})
		switch {
		case err == nil:
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil, s.late(ctx, name, last)
		default:
			return nil, err
		}
	}
	return taken, nil
}

// late says why a snapshot did not become ready. A driver that failed tries again, so an error alone is not the end.
func (s *snapshots) late(ctx context.Context, name string, last *api.Seen[volumeSnapshot]) error {
	why := "its controller has not answered"
	if last != nil {
		if e := last.Object.Status.Error; e != nil {
			why = api.Words(e.Message)
		} else if said := s.cluster.events(ctx, last.UID); len(said) > 0 {
			why = said.String()
		}
	}
	return &diag.Error{
		Code: "kube-snapshot", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("snapshot %q is not ready after %s: %s", name, s.readyIn, why),
		Hint: "option snapshot_class of the target file selects the class; kubectl get volumesnapshotclasses lists them",
	}
}

// remove deletes the snapshots of a VM and waits until they are gone.
func (s *snapshots) remove(ctx context.Context, r record) error {
	ok, err := s.offered(ctx)
	if err != nil || !ok {
		return err
	}
	all, err := s.mirror.All(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		if markOf(&one.Object) != r.Mark || one.Object.Labels[labelVM] != r.VM.ID {
			continue
		}
		if err := s.cluster.client.Delete(ctx, api.Snapshots, one.Name, one.Object.UID, -1); err != nil {
			return err
		}
		bounded, cancel := context.WithTimeout(ctx, s.readyIn)
		err := s.mirror.Await(bounded, one.Name, func(o *api.Seen[volumeSnapshot]) (bool, error) { return o == nil || o.UID != one.UID, nil })
		cancel()
		if err != nil {
			return fmt.Errorf("delete snapshot %q: %w", one.Name, err)
		}
	}
	return nil
}

// snapshotter is the capability of a target whose cluster has snapshots.
type snapshotter struct {
	hosts *cluster
	taker *snapshots
}

var _ target.Snapshotter = (*snapshotter)(nil)

// SnapshotVMs takes snapshots of the disks of VMs, of each VM one disk after the other. They end with their VM.
func (s *snapshotter) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	list, err := s.hosts.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("snapshot VMs: %w", err)
	}
	return onEach(ctx, "snapshot", list, func(r record) error {
		_, err := s.taker.take(ctx, r, ownerOf(tag), name)
		return err
	})
}
