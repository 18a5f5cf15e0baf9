package run

import (
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
)

// Lease lets one run at a time work on a target. It ends with the process, because the kernel holds the lock; the
// fencing number rises with every lease, so that an agent can tell a late command of a former holder.
type Lease struct {
	Fence uint64
	file  *os.File
}

// Holder says who holds a lease.
type Holder struct {
	Fence uint64    `json:"fence"`
	Run   string    `json:"run,omitempty"` // empty: nobody
	PID   int       `json:"pid,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// AcquireLease takes the lease of a target in the runs directory for a run. While another process holds it, it returns
// a *diag.Error with exit code diag.ExitLocked that names the holder.
func AcquireLease(runs, targetName, run string, failpoint func(string) error) (*Lease, error) {
	fail := failpoints(failpoint)
	if err := os.MkdirAll(controlDir(runs), 0o700); err != nil {
		return nil, fmt.Errorf("acquire lease of target %q: %w", targetName, err)
	}
	if err := fail.at("lease.acquire"); err != nil {
		return nil, fmt.Errorf("acquire lease of target %q: %w", targetName, err)
	}
	path := leasePath(runs, targetName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
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
	lease := &Lease{file: file}
	if err := lease.take(run, fail); err != nil {
		_ = unlock(file)
		return nil, fmt.Errorf("acquire lease of target %q: %w", targetName, err)
	}
	return lease, nil
}

// leasePath keeps hostile target names out of file names.
func leasePath(runs, targetName string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, targetName)
	const nameBytesMax = 100
	return filepath.Join(controlDir(runs), "lease-"+name[:min(len(name), nameBytesMax)])
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

func (l *Lease) take(run string, fail failpoints) error {
	if err := fail.at("lease.locked"); err != nil {
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
	return fail.at("lease.fenced")
}

// readHolder reads the lease file. An empty file is a new one; a damaged one is reported, because a fencing number
// that starts again would let late commands through.
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

// leaseBytes is the fixed length of a lease file: one write replaces it whole, and a torn one cannot leave a tail.
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

// Release gives the lease back. The file stays, because it keeps the fencing number.
func (l *Lease) Release() error {
	err := l.write(Holder{Fence: l.Fence})
	return errors.Join(err, unlock(l.file))
}

// unlock gives a lock back and closes its file. Closing alone would not do: a process that is just being started holds
// a copy of the descriptor until it executes its program, and the lock with it.
func unlock(file *os.File) error {
	return errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_UN), file.Close())
}
