// Package state is the cluster behind the emulator of Prism: what exists, and the tasks that change it. It knows no HTTP.
//
//	v4, v3, v2 ──▶ Prism.CreateVM, SwitchPower, …  ──▶ Task: QUEUED ─▶ RUNNING ─▶ SUCCEEDED or FAILED
//	                      │                                       │ at its end
//	                      └─▶ 400, 404, 409 at once               └─▶ entities, Disks (contents), Machines (processes)
//	           Prism.Read ──▶ Data, under the lock
//
// Data is simulated: hosts are names, and a VM is whatever Machines starts. Contents of disks are files that Disks keeps.
package state

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Machines runs the VMs that are on. Methods may be called at the same time for different VMs, never for one.
type Machines interface {
	// Start returns when the machine runs, not when its guest answers.
	Start(ctx context.Context, m Machine) error
	// Stop ends it and returns when it is gone. Graceful: by its power button, with a limit. Unknown ids are gone already.
	Stop(id string, graceful bool)
}

// Machine is a VM as Machines starts it.
type Machine struct {
	ID, Name           string
	VCPUs              int
	MemoryBytes        int64
	UserData, MetaData []byte // cloud-init's, as the creator gave it
	Disks              []MachineDisk
	Addresses          []string // one for each NIC
}

// MachineDisk is a disk in the order of its address on the bus.
type MachineDisk struct {
	Path      string
	SizeBytes int64
	CDROM     bool
}

// Disks keeps the contents of images, disks and recovery points as files, by id.
type Disks interface {
	Create(id string, sizeBytes int64) error
	// Copy makes or replaces a file with the contents of another; it grows to sizeBytes if that is more.
	Copy(from, to string, sizeBytes int64) error
	// Write makes or replaces a file and returns its size and SHA-256 in hex.
	Write(id string, r io.Reader) (sizeBytes int64, sum string, err error)
	Remove(id string) error
	Path(id string) string
}

// Options is what a cluster begins with. Zero values have the defaults that the fields name.
type Options struct {
	Name           string // of the cluster; "lab"
	Hosts          int    // 3
	HostMemory     int64  // bytes of each; 64 GiB
	HostCores      int    // of each; 16
	BMCs           []string
	CVMs           []string     // addresses of the CVMs; made up from Network
	Network        netip.Prefix // of the subnet; 10.42.0.0/16
	CapacityBytes  int64        // of the storage; 4 TiB
	TaskDuration   time.Duration
	HADelay        time.Duration // from the loss of a host to the restart of its VMs; 2 s
	NoHA           bool          // VMs of a lost host stay off until it returns
	ReleaseVersion string        // of AOS; "7.3"
	Machines       Machines      // nil: nothing runs
	Disks          Disks         // required
	// Timing decides how each task goes; nil: all take TaskDuration and succeed.
	Timing func(operation, name string) Timing
}

// Timing is how a task goes.
type Timing struct {
	Queued, Running time.Duration
	Fail            string // the error message of the task, which then changes nothing; "": none
	FailAfter       bool   // the change is carried out, and the task fails all the same
	Lose            bool   // the task is forgotten once it has ended
}

// Prism is the state of one cluster. Its methods may be called at the same time.
type Prism struct {
	*base
	*power
	*vms
	*points
	*hosts
	*store
}

// The parts of a Prism.
type (
	power  struct{ *base }
	vms    struct{ *power }
	points struct{ *vms }
	hosts  struct{ *power }
	store  struct{ *base }
)

// base is what all parts share: the data, and the tasks that change it.
type base struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu     sync.Mutex
	data   Data
	busy   map[string]*sync.Mutex // by VM: one operation at a time
	closed bool
}

// New makes a cluster with hosts, one storage container, one subnet, and no VMs.
func New(o Options) *Prism {
	setDefaults(&o)
	ctx, cancel := context.WithCancel(context.Background())
	b := &base{options: o, ctx: ctx, cancel: cancel, busy: map[string]*sync.Mutex{}}
	b.data.build(o)
	p := &power{b}
	v := &vms{p}
	return &Prism{base: b, power: p, vms: v, points: &points{v}, hosts: &hosts{p}, store: &store{b}}
}

func setDefaults(o *Options) {
	put(&o.Name, "lab")
	put(&o.Hosts, 3)
	put(&o.HostMemory, 64<<30)
	put(&o.HostCores, 16)
	put(&o.CapacityBytes, 4<<40)
	put(&o.HADelay, 2*time.Second)
	put(&o.ReleaseVersion, "7.3")
	if !o.Network.IsValid() {
		o.Network = netip.MustParsePrefix("10.42.0.0/16")
	}
	if o.Machines == nil {
		o.Machines = nothing{}
	}
	if o.Timing == nil {
		o.Timing = func(string, string) Timing { return Timing{Running: o.TaskDuration} }
	}
}

func put[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// nothing runs nothing: VMs are entries alone.
type nothing struct{}

func (nothing) Start(context.Context, Machine) error { return nil }
func (nothing) Stop(string, bool)                    {}

// Close ends all tasks and all machines, and waits for them.
func (p *Prism) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.work.Wait()
	var ids []string
	p.Read(func(d *Data) {
		for _, vm := range d.VMs {
			ids = append(ids, vm.ID)
		}
	})
	for _, id := range ids {
		p.options.Machines.Stop(id, false)
	}
}

// Read calls do with the data, which must be neither kept nor changed.
func (p *base) Read(do func(d *Data)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do(&p.data)
}

// change calls do with the data, and gives it the time of the change.
func (p *base) change(do func(d *Data) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return do(&p.data)
}

// only lets one operation on a VM run at a time.
func (p *base) only(vmID string) (release func()) {
	p.mu.Lock()
	m := p.busy[vmID]
	if m == nil {
		m = &sync.Mutex{}
		p.busy[vmID] = m
	}
	p.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// Disks is where contents are.
func (p *base) Disks() Disks { return p.options.Disks }

// NewID returns a random UUID.
func NewID() string { return uuid.NewString() }

// find returns the entity with an id.
func find[T any](list []*T, id string, idOf func(*T) string) *T {
	i := slices.IndexFunc(list, func(e *T) bool { return idOf(e) == id })
	if i < 0 {
		return nil
	}
	return list[i]
}

// pause waits for a duration or the end of the cluster.
func (p *base) pause(d time.Duration) bool { return pause(p.ctx, d) }

func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
