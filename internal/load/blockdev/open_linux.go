package blockdev

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// opener opens files and devices of a system.
type opener struct {
	system  system
	between func() // for tests: what happens between the check and the open
}

// Open opens an existing device or file with flags such as os.O_RDWR|syscall.O_DIRECT, and returns its state. For writing,
// Check must pass before the open and again on the open descriptor, and both times the device must be the same: a path may
// refer to another one in between. A block device is opened exclusively, so that it cannot be mounted while it is open, and
// a second Open of it fails; Reopen gives further descriptors.
//
// Reading needs no consent and holds nothing.
func Open(path string, consent Consent, flags int) (*os.File, State, error) {
	return opener{system: host(), between: func() {}}.open(path, consent, flags)
}

const openForbidden = os.O_CREATE | os.O_TRUNC | os.O_APPEND

func (o opener) open(path string, consent Consent, flags int) (*os.File, State, error) {
	if flags&openForbidden != 0 {
		return nil, State{}, fmt.Errorf("open %q: a device is not created, cut or appended to", path)
	}
	before, err := o.system.examine(path)
	if err != nil {
		return nil, before, err
	}
	write := flags&unix.O_ACCMODE != os.O_RDONLY
	if write {
		err = Check(before, consent)
	} else if before.Kind == Other {
		err = refuse(path, []Reason{notADisk(before)})
	}
	if err != nil {
		return nil, before, err
	}
	o.between()
	if write {
		flags |= unix.O_EXCL // only affects block devices, as no file is created
	}
	f, err := openNow(path, flags)
	if errors.Is(err, unix.EBUSY) {
		return nil, before, refuse(path, []Reason{{
			Code: "busy", Text: "device became busy", Advice: "find its user and try again",
		}})
	}
	if err != nil {
		return nil, before, err
	}
	after, err := o.again(f, before)
	if err == nil {
		err = o.same(before, after, write, consent)
	}
	if err != nil {
		f.Close()
		return nil, after, err
	}
	return f, after, nil
}

// again examines the opened file. The descriptor may be write-only, so that another one reads the content.
func (o opener) again(f *os.File, before State) (State, error) {
	look := f
	if before.Kind == Block {
		var err error
		if look, err = openToLook(self(f)); err != nil {
			return State{}, fmt.Errorf("examine %q again: %w", before.Path, err)
		}
		defer look.Close()
	}
	return o.system.opened(f, look, before.Path, before.Node)
}

// self is the path of an open descriptor.
func self(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

func (o opener) same(before, after State, write bool, consent Consent) error {
	if what := changed(before, after); what != "" {
		return refuse(before.Path, []Reason{{
			Code:   "changed",
			Text:   "it is not any more what it was a moment ago: its " + what + " changed",
			Advice: "a disk was exchanged or a device was set up again at this moment; check it before you retry",
		}})
	}
	if !write {
		return nil
	}
	return Check(after, consent)
}

// openNow never blocks, even if the path has become a pipe.
func openNow(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		_ = unix.Close(fd) // nothing was written
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
