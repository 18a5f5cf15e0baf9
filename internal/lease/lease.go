// Package lease lets one controller at a time work on a machine, independent of where controllers run and which user started
// them.
//
//	Hold       takes the lease of this machine, for as long as this process lives            (hold.go)
//	Share      takes a shared lease, which excludes the exclusive one only                   (share.go)
//	Keep       is a process that holds it for a controller elsewhere, which renews it         (keep.go)
//	Together   takes the leases of several machines in an order that all controllers share    (together.go)
//
// On Linux a lease of a machine is an abstract socket: the kernel gives the name to one process of any user and frees it
// with the process; no file is left. A connection to the socket returns the lease holder. A machine that is reached in
// another way is a Place.
//
// Limitation: network namespaces of one machine, such as those of labs, count as separate machines.
package lease

import (
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/google/uuid"
)

// Times of a lease that a controller on another machine holds.
const (
	// RenewPeriod is how often a controller renews it.
	RenewPeriod = 20 * time.Second
	// Life is how long it lasts without being renewed: longer than the 15 minutes for which a run bears with a network
	// that is cut.
	Life = 16 * time.Minute
	// skewMax is how far clocks of controllers may be apart, where a lease has no clock of its own.
	skewMax = 4 * time.Minute
	// watchLength is how long a lease that looks dead by such a clock is watched for a sign of life.
	watchLength = 5 * RenewPeriod / 2
	// callMax bounds one look at one machine.
	callMax = time.Minute
)

// Holder describes the lease holder, for messages to other controllers.
type Holder struct {
	ID      string    `json:"id"` // of this lease: a UUID
	Run     string    `json:"run"`
	User    string    `json:"user"` // and machine: "root@db7"
	Process Process   `json:"process"`
	Since   time.Time `json:"since"`
	Renewed time.Time `json:"renewed,omitzero"` // by the controller's clock; zero where the lease ends by itself
	Fence   uint64    `json:"fence"`            // rises with every lease of a machine
	// Cleaning is set where nothing is done with the lease but to end what a dead holder left of its own: no run begins.
	Cleaning bool `json:"cleaning,omitempty"`
}

// NewHolder describes this process as the lease holder for a run. The new fence is higher than fence.
func NewHolder(run string, fence uint64) Holder {
	now := time.Now()
	h := Holder{ID: uuid.NewString(), Run: run, Process: thisProcess(), Since: now.UTC().Truncate(time.Second)}
	h.Fence = max(fence+1, uint64(now.UnixNano()))
	name, _ := os.Hostname()
	h.User = fmt.Sprint(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		h.User = u.Username
	}
	h.User += "@" + name
	return h
}

// HeldError says that another process holds a lease.
type HeldError struct {
	By    Holder
	Where string // the machine, as the target calls it; "" is this one
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("run %q has it (process %d of %s, since %s)", e.By.Run, e.By.Process.PID, e.By.User,
		e.By.Since.Local().Format(time.DateTime))
	if e.Where != "" {
		text = fmt.Sprintf("%q: ", e.Where) + text
	}
	return text
}

// Here reports whether the holder's process runs on this machine, so that it can be stopped from here.
func (e *HeldError) Here() bool { return e.By.Process.here() }
