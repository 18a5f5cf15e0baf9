package disks

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
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/events"
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

// Snapshots are those of claims, by the driver of their storage. They end with their VM. Its methods may be called concurrently for
// several VMs.
type Snapshots struct {
	client  *api.Client
	class   string // "": the default of the driver
	mirror  *api.Mirror[volumeSnapshot]
	readyIn time.Duration
	look    time.Duration // how long an error of a snapshot may last

	mu     sync.Mutex
	absent bool // the cluster has none, or the user may not list them
}

const (
	snapshotReadyMax = 5 * time.Minute
	snapshotNote     = "bragg.dev/snapshot" // the name by the scenario, quoted
	takenNote        = "bragg.dev/taken"    // when, the same for all disks of a VM
	deviceNote       = "bragg.dev/device"
)

// NewSnapshots makes Snapshots of a VolumeSnapshotClass, "" for the default of the driver. It makes no calls.
func NewSnapshots(c *api.Client, class string, patience time.Duration) *Snapshots {
	return &Snapshots{client: c, class: class, mirror: api.NewMirror[volumeSnapshot](c, api.Snapshots, object.Ours), readyIn: min(patience, snapshotReadyMax), look: min(patience/5, claimLook)}
}

// Wait waits for the end of the watch, after the client was closed.
func (s *Snapshots) Wait() { s.mirror.Wait() }

// Offered reports whether the cluster has snapshots, and the user may take them.
func (s *Snapshots) Offered(ctx context.Context) (bool, error) {
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

// Take takes snapshots of all disks of a VM, one after the other, and waits until they can be used. It returns their names.
func (s *Snapshots) Take(ctx context.Context, r object.Record, tag object.Owner, name string) ([]string, error) {
	volumes := r.Volumes()
	taken := make([]string, len(volumes))
	var random [4]byte
	_, _ = rand.Read(random[:])
	now := time.Now().UTC().Format(takenFormat)
	for i, v := range volumes {
		var one volumeSnapshot
		taken[i] = v.Claim + "-" + hex.EncodeToString(random[:])
		one.ObjectMeta = r.Meta(taken[i], tag)
		one.Annotations[snapshotNote], one.Annotations[takenNote] = strconv.QuoteToASCII(name), now
		one.Annotations[deviceNote] = v.Device
		one.Spec.Source.Claim = v.Claim
		if s.class != "" {
			one.Spec.Class = &s.class
		}
		_, err := api.Create(ctx, s.client, api.Snapshots, &one, func(o *volumeSnapshot) bool { return object.MarkOf(o) == tag.Mark })
		if err != nil {
			return nil, err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, s.readyIn)
	defer cancel()
	for _, name := range taken {
		if err := s.ready(ctx, bounded, name); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// ready waits until a snapshot can be used, or bounded ends. A driver that failed tries again, so an error is the end only when it
// lasts.
func (s *Snapshots) ready(ctx, bounded context.Context, name string) error {
	began := time.Now()
	var last *api.Seen[volumeSnapshot]
	var failed time.Time // since when it has an error
	look := func(o *api.Seen[volumeSnapshot]) (bool, error) {
		if o == nil || o.Object.Status == nil {
			return false, nil
		}
		last = o
		if o.Object.Status.Error == nil {
			failed = time.Time{}
		} else if failed.IsZero() {
			failed = time.Now()
		}
		return o.Object.Status.Ready != nil && *o.Object.Status.Ready, nil
	}
	for {
		slice, cancel := context.WithTimeout(bounded, s.look)
		err := s.mirror.Await(slice, name, look)
		cancel()
		lasts := !failed.IsZero() && time.Since(failed) >= s.look
		switch {
		case err == nil || !errors.Is(err, context.DeadlineExceeded):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case bounded.Err() != nil || lasts:
			return s.late(ctx, name, last, time.Since(began))
		}
	}
}

// late says why a snapshot did not become ready.
func (s *Snapshots) late(ctx context.Context, name string, last *api.Seen[volumeSnapshot], after time.Duration) error {
	why := "its controller has not answered"
	if last != nil {
		if e := last.Object.Status.Error; e != nil {
			why = api.Words(e.Message)
		} else if said := events.Of(ctx, s.client, last.UID); len(said) > 0 {
			why = said.String()
		}
	}
	return &diag.Error{
		Code: "kube-snapshot", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("snapshot %q is not ready after %s: %s", name, after.Round(time.Second), why),
		Hint: "option snapshot_class of the target file selects the class; kubectl get volumesnapshotclasses lists them",
	}
}

// takenFormat has all digits, so that times compare as texts.
const takenFormat = "2006-01-02T15:04:05.000000000Z"

// Latest returns the names of the latest snapshots of that name, one of each disk.
func (s *Snapshots) Latest(ctx context.Context, r object.Record, name string) ([]string, error) {
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
	volumes := r.Volumes()
	found := make([]string, len(volumes))
	for i, v := range volumes {
		if found[i] = names[v.Device]; found[i] == "" {
			return nil, fmt.Errorf("it has no snapshot %q of disk %s", name, v.Device)
		}
	}
	return found, nil
}

// Sources are snapshots as the content of claims.
func Sources(names []string) []*corev1.TypedLocalObjectReference {
	group := api.Snapshots.Group
	from := make([]*corev1.TypedLocalObjectReference, len(names))
	for i, name := range names {
		from[i] = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: api.Snapshots.Kind, Name: name}
	}
	return from
}

// Remove deletes the snapshots of a VM and waits until they are gone.
func (s *Snapshots) Remove(ctx context.Context, r object.Record) error {
	ok, err := s.Offered(ctx)
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
		if err := s.client.Delete(ctx, api.Snapshots, one.Name, one.Object.UID, -1); err != nil {
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
