package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/wait"
)

// The target's storage can run out just as the controller's can: thin disks of VMs grow as they are written, snapshots
// grow, and other users write to the same pool. On a full pool guests stall or get I/O errors, including guests of other
// users, so the run is stopped first. Memory needs no such guard: preflight has already counted all memory that VMs can
// use, and a VM that its host kills is reported as vm-stopped.
//
// Each node has its own goroutine, so that an unreachable node does not delay the others. Storage that is filling up is
// polled more often. The run stops when, at the rate of the last seconds, the next poll would come too late. A rate
// measured over a long interval is not enough, because it may be a single large file: the storage is polled again at once
// instead.
const (
	spaceAgain    = 250 * time.Millisecond
	spacePauseMin = time.Second
	spacePauseMax = 15 * time.Second
	// spaceDeadline bounds one poll. If nodes share a storage, the next node polls it after the previous one had that
	// long.
	spaceDeadline = 10 * time.Second
)

// targetGuard watches the free space of a target's storage.
type targetGuard struct {
	source target.SpaceMeter
	nodes  []target.Node
	copies int // how often the storage keeps each byte, at least 1

	mu       sync.Mutex
	storages map[string]*storage
}

// storage is the known state of one storage.
type storage struct {
	nodes     []string // names of those that have it, sorted
	next      time.Time
	read      time.Time // when freeBytes was true; zero: not read yet
	freeBytes int64
	pause     time.Duration
}

// newTargetGuard returns nil if the target does not report its free space.
func newTargetGuard(t target.Target, i target.Inventory) *targetGuard {
	source, ok := t.(target.SpaceMeter)
	if !ok {
		return nil
	}
	return &targetGuard{source: source, nodes: i.Nodes, copies: max(1, i.Replication), storages: map[string]*storage{}}
}

// watch polls the space of all nodes until ctx ends or free space falls below the floor somewhere; then it calls stop once
// with the reason. A node that does not answer is not a reason to stop: its failure is detected elsewhere.
func (g *targetGuard) watch(ctx context.Context, stop func(error)) {
	if g == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	var all sync.WaitGroup
	for _, n := range g.nodes {
		all.Go(func() {
			if err := g.follow(ctx, n); err != nil {
				once.Do(func() { stop(err) })
				cancel()
			}
		})
	}
	all.Wait()
}

// follow watches the storage of one node. It returns nil when ctx ends.
func (g *targetGuard) follow(ctx context.Context, n target.Node) error {
	known := "" // the node's storage, once it has reported it
	for {
		delay := g.claim(known)
		if delay <= 0 {
			asked := time.Now()
			space, err := g.look(ctx, n.ID)
			if err == nil {
				known = space.Storage
				delay, err = g.take(n, space, time.Since(asked))
				if err != nil {
					return err
				}
			} else {
				delay = g.missed(known)
			}
		}
		if wait.For(ctx, delay) != nil {
			return nil
		}
	}
}

func (g *targetGuard) look(ctx context.Context, node string) (target.Space, error) {
	ctx, cancel := context.WithTimeout(ctx, spaceDeadline)
	defer cancel()
	return g.source.NodeSpace(ctx, node)
}

// missed returns when to look again after a look that failed: one at a storage that fills soon, because libvirt reads no pool while
// volumes are being made in it. Other nodes of the storage need not wait that long: one that is cut off must not keep them from looking.
func (g *targetGuard) missed(name string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.storages[name]
	if s == nil {
		return spacePauseMax
	}
	s.pause = min(max(2*s.pause, spacePauseMin), spacePauseMax)
	s.next = time.Now()
	return s.pause
}

// claim returns how long a storage need not be read again; 0: the caller is to do it.
func (g *targetGuard) claim(name string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.storages[name]
	if s == nil {
		return 0
	}
	if wait := time.Until(s.next); wait > 0 {
		return wait
	}
	s.next = time.Now().Add(spaceDeadline)
	return 0
}

// take records the reading of a node, and returns the delay until the next poll, or an error if there is too little space.
func (g *targetGuard) take(n target.Node, space target.Space, took time.Duration) (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.storages[space.Storage]
	if s == nil {
		s = &storage{}
		g.storages[space.Storage] = s
	}
	if name := cmp.Or(n.Name, n.ID); !slices.Contains(s.nodes, name) {
		s.nodes = append(s.nodes, name)
		slices.Sort(s.nodes)
	}
	floor, now := g.floor(space.TotalBytes), time.Now()
	perSecond := s.rate(space.FreeBytes, now)
	var enough bool
	if s.pause, enough = s.following(float64(space.FreeBytes-floor), perSecond, took); !enough && space.TotalBytes > 0 {
		return 0, g.lowSpace(s, space, floor, perSecond)
	}
	s.next = now.Add(s.pause)
	if s.read.IsZero() || now.Sub(s.read) >= spaceAgain {
		s.read, s.freeBytes = now, space.FreeBytes
	}
	return s.pause, nil
}

// rate returns by how many bytes a second the free space has shrunk since the reading before. Nodes that share a storage may read it
// at nearly the same time: a disk that is created in between would count as many times its size in a second.
func (s *storage) rate(freeBytes int64, now time.Time) float64 {
	since := now.Sub(s.read)
	if s.read.IsZero() || since < spaceAgain {
		return 0
	}
	return max(0, float64(s.freeBytes-freeBytes)/since.Seconds())
}

// following returns the delay until the next poll for this many bytes above the floor, and false if there is no time for
// another poll.
func (s *storage) following(above, perSecond float64, took time.Duration) (pause time.Duration, enough bool) {
	pause = min(max(2*s.pause, spacePauseMin), spacePauseMax)
	if above < 0 || perSecond <= 0 {
		return pause, above >= 0
	}
	left := min(above/perSecond, time.Hour.Seconds())
	spare := time.Duration(left*float64(time.Second)) - spacePauseMin - 2*took // a look may take longer than the one before
	switch {
	case spare >= 0:
		return min(pause, max(spare/2, spacePauseMin)), true
	case s.pause > spacePauseMin:
		return spaceAgain, true
	}
	return 0, false
}

// floor is that of any file system, for bytes that are kept so many times.
func (g *targetGuard) floor(totalBytes int64) int64 {
	copies := int64(g.copies)
	return guardFloor(totalBytes/copies) * copies
}

func (g *targetGuard) lowSpace(s *storage, space target.Space, floor int64, perSecond float64) error {
	where := "node"
	if len(s.nodes) > 1 {
		where = "nodes"
	}
	more := ","
	if perSecond > 0 {
		more = fmt.Sprintf(", %s less each second,", unit.FormatBytes(int64(perSecond)))
	}
	if g.copies > 1 {
		more += fmt.Sprintf(" each byte is kept %d times,", g.copies)
	}
	return &diag.Error{
		Code: "low-space",
		Message: fmt.Sprintf("only %s of %s are free in %s of %s %s%s and %s have to stay free, so that no VM gets I/O errors",
			unit.FormatBytes(space.FreeBytes), unit.FormatBytes(space.TotalBytes), space.Place, where, strings.Join(s.nodes, ", "), more,
			unit.FormatBytes(floor)),
		Hint: "free some space there, or use fewer VMs or smaller disks, and run again",
		Exit: diag.ExitUndecided,
	}
}
