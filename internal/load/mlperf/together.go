package mlperf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/lockstep"
	"github.com/braggdev/bragg/internal/load/program"
)

// A training on several VMs is one training, as with MPI: its steps end on all VMs together, so that the slowest sets the pace, and its
// AU is that of all accelerators. The first VM coordinates. With a shared data set, ranks are counted through all VMs, and the order of an
// epoch is one of all files. Otherwise each VM has its own files as its share of the data set. Checkpoints begin and end on all VMs together.

// coordinator is the end that all VMs of a training report to.
type coordinator struct {
	workload load.Workload
	barrier  *lockstep.Coordinator
	ports    []int
}

var _ load.Server = (*coordinator)(nil)

func newCoordinator(w *load.Workload) (*coordinator, error) {
	names := make([]string, len(w.Remote.Peers))
	for i, p := range w.Remote.Peers {
		names[i] = p.VM
	}
	b, err := lockstep.Listen(w.Remote.Address, w.Remote.Secret, names)
	if err != nil {
		return nil, err
	}
	c := &coordinator{workload: *w, barrier: b}
	for range names {
		c.ports = append(c.ports, b.Port())
	}
	return c, nil
}

// Ports is the same one for all VMs; see load.Server.
func (c *coordinator) Ports() []int { return c.ports }

// Run waits until it is stopped; nothing is measured here.
func (c *coordinator) Run(ctx context.Context, sink load.Sink) error {
	defer func() { _ = c.Close() }()
	return program.Serve(ctx, c.workload, sink, Name)
}

// Close ends the barrier.
func (c *coordinator) Close() error {
	c.barrier.Close()
	return nil
}

// together is this VM's end of the barrier. Only one goroutine at a time uses it; nil: the load has one VM.
type together struct {
	member *lockstep.Member
	vms    int
	axis   program.Axis
	out    *record
}

// inStep reports whether a load waits for other VMs.
func inStep(r *load.Remote) bool { return r.VMs > 1 }

// join waits for all VMs of the load.
func (in *instance) join(ctx context.Context, axis program.Axis) (*together, error) {
	r := &in.workload.Remote
	if !inStep(r) || in.workload.Prefill {
		return nil, nil
	}
	if len(r.Peers) != 1 {
		return nil, errors.New("the VMs of this load have no coordinator")
	}
	m, err := lockstep.Join(ctx, lockstep.Place{Address: net.JoinHostPort(r.Peers[0].Address, strconv.Itoa(r.Peers[0].Port)),
		Name: in.workload.VM, Rank: r.Rank, Secret: r.Secret})
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, fmt.Errorf("wait for the other VMs of this load: %w", err)
	}
	return &together{member: m, vms: r.VMs, axis: axis, out: in.out}, nil
}

// each says how many VMs a number of accelerators applies to.
func (t *together) each() string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf(" on each of %d VMs", t.vms)
}

// endGrace is how much longer than another VM this one runs at most.
const endGrace = time.Second

// leave says why this VM ends. If another one has ended before, the time of the load is nearly over here too: it waits for that.
func (t *together) leave(ctx context.Context, err error) error {
	if t == nil {
		return err
	}
	if errors.Is(err, lockstep.ErrEnded) {
		select {
		case <-ctx.Done():
		case <-time.After(endGrace):
		}
		err = nil
	}
	reason := err
	if ctx.Err() != nil {
		reason = nil
	}
	t.member.Leave(reason)
	return err
}

// slowest ends a checkpoint on all VMs, and returns what the slowest VM took of what this one did.
func (t *together) slowest(ctx context.Context, nanos int64) (int64, error) {
	if t == nil {
		return nanos, nil
	}
	all, err := t.member.Step(ctx, -float64(nanos))
	if err != nil {
		return nanos, err
	}
	return int64(-all.Minima[0]), nil
}

// Values that VMs exchange.
const (
	shareAU      = iota // times accelerators
	shareKnown          // accelerators with a known AU
	shareSupply         // AU of reads alone; its minimum counts
	shareSamples        // per second
	shareCount          // of accelerators
	sharesOfVM
)

// step ends one step on all VMs. r is what this VM measured until now.
func (t *together) step(ctx context.Context, r result) (result, error) {
	if t == nil {
		return r, nil
	}
	values := make([]float64, sharesOfVM)
	if n := float64(r.accelerators); !math.IsNaN(r.au) {
		values[shareAU], values[shareKnown] = r.au*n, n
	}
	values[shareSupply] = math.MaxFloat64
	if !math.IsNaN(r.supply) {
		values[shareSupply] = r.supply
	}
	values[shareSamples], values[shareCount] = r.samples, float64(r.accelerators)
	began := t.axis.Now()
	all, err := t.member.Step(ctx, values...)
	if err != nil {
		return r, err
	}
	whole := result{accelerators: int(all.Sums[shareCount]), steps: r.steps, seconds: r.seconds, samples: all.Sums[shareSamples], au: math.NaN(), supply: math.NaN()}
	if known := all.Sums[shareKnown]; known > 0 {
		whole.au = all.Sums[shareAU] / known
	}
	if least := all.Minima[shareSupply]; least < math.MaxFloat64 {
		whole.supply = least
	}
	t.out.passed(t.axis.Now()-began, all.Last, whole)
	return whole, nil
}
