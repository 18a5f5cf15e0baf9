package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

// Lease lets one run at a time work on a target. It has two halves: a file in the runs directory, which keeps the fencing number,
// and a lock on the target, which excludes controllers that share no directory (AtTarget). The first ends with the process,
// because the kernel holds the lock; package lease defines when the second ends. The fencing number rises with every lease, so
// that an agent can recognize a late command of a former holder.
type Lease struct {
	Fence uint64
	// Cleaning is set before AtTarget by a caller that only removes what a dead holder left at the target: see lease.Holder.
	Cleaning bool

	file *os.File
	fail Failpoint
	name string
	run  string
	lock target.Lock // nil before AtTarget, and if the target has none
}

// Holder identifies the holder of a lease.
type Holder struct {
	Fence uint64    `json:"fence"`
	Run   string    `json:"run,omitempty"` // empty: not held
	PID   int       `json:"pid,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// AcquireLease takes the lease of a target in the runs directory for a run. While another process holds it, it returns
// a *diag.Error with exit code diag.ExitLocked that names the holder.
func AcquireLease(runs, targetName, run string, failpoint func(string) error) (*Lease, error) {
	fail := Failpoint(failpoint)
	if err := makeControl(runs); err != nil {
		return nil, err
	}
	if err := fail.At("lease.acquire"); err != nil {
		return nil, fmt.Errorf("acquire lease of target %q: %w", targetName, err)
	}
	path := leasePath(runs, targetName)
	file, err := durable.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("acquire lease of target %q: %w", targetName, err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := readHolder(file) // for the message only
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, lockedError(targetName, holder)
		}
		return nil, fmt.Errorf("lock lease of target %q: %w", targetName, err)
	}
	l := &Lease{file: file, fail: fail, name: targetName, run: run}
	if err := l.take(run, fail); err != nil {
		_ = durable.Unlock(file)
		return nil, fmt.Errorf("acquire lease of target %q: %w", targetName, err)
	}
	return l, nil
}

const leasePrefix = "lease-"

// leasePath keeps hostile target names out of file names.
func leasePath(runs, targetName string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, targetName)
	const nameBytesMax = 100
	return filepath.Join(controlDir(runs), leasePrefix+name[:min(len(name), nameBytesMax)])
}

func lockedError(targetName string, h Holder) error {
	message := fmt.Sprintf("target %q is in use by another run", targetName)
	hint := "wait until it has ended"
	if h.Run != "" {
		message = fmt.Sprintf("target %q is in use by run %q (process %d, since %s)", targetName, h.Run, h.PID,
			h.Since.Local().Format(time.DateTime))
		hint = fmt.Sprintf("wait until it has ended, or stop it with: kill -INT %d", h.PID)
	}
	return &diag.Error{Code: "target-locked", Message: message, Hint: hint, Exit: diag.ExitLocked}
}

func (l *Lease) take(run string, fail Failpoint) error {
	if err := fail.At("lease.locked"); err != nil {
		return err
	}
	before, err := readHolder(l.file)
	if err != nil {
		return err
	}
	l.Fence = before.Fence + 1
	if err := l.write(Holder{Fence: l.Fence, Run: run, PID: os.Getpid(), Since: time.Now().UTC()}); err != nil {
		return err
	}
	return fail.At("lease.fenced")
}

// readHolder reads the lease file. An empty file is a new one; a damaged one is reported, because a restarted fencing number
// would accept late commands.
func readHolder(file *os.File) (Holder, error) {
	var h Holder
	data, err := io.ReadAll(io.NewSectionReader(file, 0, 4096))
	if err != nil || len(data) == 0 {
		return h, err
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("read lease %q: %w", filepath.Base(file.Name()), err)
	}
	return h, nil
}

// leaseBytes is the fixed length of a lease file: one write replaces it completely, and a torn write cannot leave a tail.
const leaseBytes = 512

func (l *Lease) write(h Holder) error {
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(body) >= leaseBytes {
		return fmt.Errorf("run id is too long")
	}
	block := []byte(strings.Repeat(" ", leaseBytes-1) + "\n")
	copy(block, body)
	if _, err := l.file.WriteAt(block, 0); err != nil {
		return err
	}
	return l.file.Sync()
}

// AtTarget takes the target's half of the lease, if it has one. Before, it notes how to reach the target: see LeaseNote. While
// another controller holds that half, the error has exit code diag.ExitLocked and names the holder; another error means that the
// target did not answer. The lease of the directory is kept either way.
func (l *Lease) AtTarget(ctx context.Context, t target.Target, how []byte) error {
	if err := l.fail.At("lease.ask"); err != nil {
		return fmt.Errorf("acquire lease of target %q: %w", l.name, err)
	}
	if locker, ok := t.(target.Locker); ok {
		_, noNote := os.Stat(l.file.Name() + noteSuffix) // of a controller that died
		if err := l.note(how); err != nil {
			return fmt.Errorf("acquire lease of target %q: %w", l.name, err)
		}
		holder := lease.NewHolder(l.run, l.Fence)
		holder.Cleaning = l.Cleaning
		lock, err := locker.Lock(ctx, holder)
		if held := (*lease.HeldError)(nil); errors.As(err, &held) {
			if noNote == nil {
				return heldError(l.name, held) // the change that the note is for may still exist
			}
			return errors.Join(heldError(l.name, held), l.forgetNote())
		}
		if err != nil {
			return fmt.Errorf("acquire lease of target %q: %w", l.name, err)
		}
		l.lock, l.Fence = lock, max(l.Fence, lock.Fence())
		if err := l.write(Holder{Fence: l.Fence, Run: l.run, PID: os.Getpid(), Since: time.Now().UTC()}); err != nil {
			return fmt.Errorf("acquire lease of target %q: %w", l.name, err)
		}
	}
	if err := l.fail.At("lease.held"); err != nil {
		return fmt.Errorf("acquire lease of target %q: %w", l.name, err)
	}
	return nil
}

// Renew completes the target's half with the machines that did not answer to AtTarget, and do now. While another controller holds one of
// them, the error has exit code diag.ExitLocked.
func (l *Lease) Renew(ctx context.Context) error {
	lock, ok := l.lock.(target.RenewedLock)
	if !ok {
		return nil
	}
	err := lock.Renew(ctx)
	if held := (*lease.HeldError)(nil); errors.As(err, &held) {
		return heldError(l.name, held)
	}
	return err
}

func heldError(targetName string, held *lease.HeldError) error {
	e := &diag.Error{Code: "target-locked", Exit: diag.ExitLocked, Message: fmt.Sprintf("target %q is in use: %v", targetName, held),
		Hint: "wait until that run has ended, or stop it where it was started"}
	switch {
	case held.Here() && held.By.Process.PID == os.Getpid():
		e.Hint = "wait until that run of this program has ended"
	case held.Here():
		e.Hint = fmt.Sprintf("wait until it has ended, or stop it with: kill -INT %d", held.By.Process.PID)
	}
	return e
}

// Lost reports another holder of the target, which is only possible if this one was disconnected for long. It may be nil.
func (l *Lease) Lost() <-chan lease.Holder {
	if l.lock == nil {
		return nil
	}
	return l.lock.Lost()
}

// Meetings reports other controllers that work on the target. It is nil for an exclusive lease.
func (l *Lease) Meetings() <-chan lease.Meeting {
	if shared, ok := l.lock.(target.SharedLock); ok {
		return shared.Meetings()
	}
	return nil
}

// LeaveTarget releases the target's half. Call it before the target is closed.
func (l *Lease) LeaveTarget() error {
	if l.lock == nil {
		return nil
	}
	lock := l.lock
	l.lock = nil
	return errors.Join(lock.Unlock(), l.forgetNote())
}

// Release releases the whole lease. The file stays, because it keeps the fencing number.
func (l *Lease) Release() error {
	err := l.LeaveTarget()
	return errors.Join(err, l.write(Holder{Fence: l.Fence}), durable.Unlock(l.file))
}
