package kube

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
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

	mu     sync.Mutex
	absent bool // the cluster has none, or the user may not list them
}

const (
	snapshotReadyMax = 5 * time.Minute
	snapshotNote     = "bragg.dev/snapshot" // the name by the scenario, quoted
	takenNote        = "bragg.dev/taken"    // when, the same for all disks of a VM
	deviceNote       = "bragg.dev/device"
)

func newSnapshots(c *cluster, class string) *snapshots {
	return &snapshots{cluster: c, class: class, mirror: api.NewMirror[volumeSnapshot](c.client, api.Snapshots, object.Ours), readyIn: min(c.settings.patience, snapshotReadyMax)}
}

// offered reports whether the cluster has snapshots, and the user may take them.
func (s *snapshots) offered(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.absent {
		return false, nil
	}
	err := s.mirror.Start(ctx)
	if api.NotFound(err) || api.Forbidden(err) {
		s.absent = true
		return false, nil
	}
	return err == nil, err
}

// take takes snapshots of all disks of a VM, one after the other, and waits until they can be used. It returns their names.
func (s *snapshots) take(ctx context.Context, r object.Record, tag object.Owner, name string) ([]string, error) {
	taken := make([]string, len(r.VM.Disks))
	var random [4]byte
	_, _ = rand.Read(random[:])
	now := time.Now().UTC().Format(takenFormat)
	for i := range r.VM.Disks {
		var one volumeSnapshot
		taken[i] = r.DiskName(i) + "-" + hex.EncodeToString(random[:])
		one.ObjectMeta = r.Meta(taken[i], tag)
		one.Annotations[snapshotNote], one.Annotations[takenNote] = strconv.QuoteToASCII(name), now
		one.Annotations[deviceNote] = r.VM.Disks[i].Device
		one.Spec.Source.Claim = r.DiskName(i)
		if s.class != "" {
			one.Spec.Class = &s.class
		}
		_, err := api.Create(ctx, s.cluster.client, api.Snapshots, &one, func(o *volumeSnapshot) bool { return object.MarkOf(o) == tag.Mark })
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

// takenFormat has all digits, so that times compare as texts.
const takenFormat = "2006-01-02T15:04:05.000000000Z"

// latest returns the names of the latest snapshots of that name, one of each disk.
func (s *snapshots) latest(ctx context.Context, r object.Record, name string) ([]string, error) {
	all, err := s.mirror.All(ctx)
	if err != nil {
		return nil, err
	}
	last, names := "", map[string]string{}
	for _, one := range all {
		o := &one.Object
		taken := o.Annotations[takenNote]
		if object.MarkOf(o) != r.Mark || o.Labels[object.LabelVM] != r.VM.ID || o.Annotations[snapshotNote] != strconv.QuoteToASCII(name) || taken < last {
			continue
		}
		if taken > last {
			last, names = taken, map[string]string{}
		}
		names[o.Annotations[deviceNote]] = one.Name
	}
	found := make([]string, len(r.VM.Disks))
	for i, d := range r.VM.Disks {
		if found[i] = names[d.Device]; found[i] == "" {
			return nil, fmt.Errorf("it has no snapshot %q of disk %s", name, d.Device)
		}
	}
	return found, nil
}

// sources are snapshots as the content of claims.
func sources(names []string) []*corev1.TypedLocalObjectReference {
	group := api.Snapshots.Group
	from := make([]*corev1.TypedLocalObjectReference, len(names))
	for i, name := range names {
		from[i] = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: api.Snapshots.Kind, Name: name}
	}
	return from
}

// remove deletes the snapshots of a VM and waits until they are gone.
func (s *snapshots) remove(ctx context.Context, r object.Record) error {
	ok, err := s.offered(ctx)
	if err != nil || !ok {
		return err
	}
	all, err := s.mirror.All(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		if object.MarkOf(&one.Object) != r.Mark || one.Object.Labels[object.LabelVM] != r.VM.ID {
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
	hosts  *cluster
	taker  *snapshots
	claims *claims
	run    runner
	locks  *target.KeyLocks
}

var (
	_ target.Snapshotter = (*snapshotter)(nil)
	_ target.Reverter    = (*snapshotter)(nil)
)

// SnapshotVMs takes snapshots of the disks of VMs, of each VM one disk after the other. They end with their VM.
func (s *snapshotter) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	list, err := s.hosts.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("snapshot VMs: %w", err)
	}
	return onEach(ctx, "snapshot", list, func(r object.Record) error {
		_, err := s.taker.take(ctx, r, object.OwnerOf(tag), name)
		return err
	})
}

// RevertVMs replaces the claims of VMs that are off by ones from their latest snapshots of that name. Snapshots stay.
func (s *snapshotter) RevertVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	list, err := s.hosts.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("revert VMs: %w", err)
	}
	return onEach(ctx, "revert", list, func(r object.Record) error {
		defer s.locks.Lock(r.VM.ID)()
		states, err := s.run.states(ctx, r.Mark)
		if err != nil {
			return err
		}
		if states[r.VM.ID].power == target.PowerOn {
			return errors.New("it is on")
		}
		if err := s.run.remove(ctx, r); err != nil { // what has ended uses its claims
			return err
		}
		names, err := s.taker.latest(ctx, r, name)
		if err != nil {
			return err
		}
		claimed, err := s.claims.of(ctx, r.Mark)
		if err != nil {
			return err
		}
		if err := s.claims.remove(ctx, claimed[r.VM.ID]); err != nil {
			return err
		}
		return s.claims.make(ctx, r, object.OwnerOf(tag), sources(names))
	})
}
