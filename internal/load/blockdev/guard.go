package blockdev

import (
	"errors"
	"os"
	"sync"
)

// Guard checks the files and devices that one load writes to, and holds the block devices among them until it is closed.
// Loads of one process may share a device: it is examined and held for the first of them and released by the last. The zero
// value is ready; a Guard belongs to one goroutine.
type Guard struct {
	holds []*hold
	files fileLook
}

// hold is a device that this process has open exclusively.
type hold struct {
	number Number
	ready  chan struct{} // closed once the fields below are final
	file   *os.File
	state  State
	err    error
	users  int // guarded by held
}

// held are the devices that loads of this process write to. Without it, a second load would find its device busy.
var held struct {
	sync.Mutex
	devices map[Number]*hold
}

// Admit refuses writing to path as Open does. For a block device it returns the descriptor that holds it: a load opens the
// device by the descriptor's name in /proc/self/fd, because the path may refer to another device by now. For a regular file
// it returns nil.
func (g *Guard) Admit(path string, c Consent) (*os.File, error) {
	kind, number, err := kindAt(path)
	switch {
	case err != nil:
		return nil, err
	case kind == Regular:
		return nil, g.files.check(path)
	case kind != Block:
		s, err := Examine(path)
		if err == nil {
			err = Check(s, c)
		}
		return nil, err
	}
	h, err := take(path, number, c)
	if err != nil {
		return nil, err
	}
	g.holds = append(g.holds, h)
	return h.file, nil
}

// take holds a device, or shares an existing hold. A sharing caller must also identify this device; its content was checked
// for the first, and is being overwritten.
func take(path string, number Number, c Consent) (*hold, error) {
	for {
		h, first := join(number)
		if first {
			h.open(path, number, c)
			if h.err != nil {
				_ = leave(h) // nothing is open
			}
			close(h.ready)
		}
		<-h.ready
		switch {
		case h.err != nil && first:
			return nil, h.err
		case h.err != nil:
			continue // the first consent was not sufficient; this one may be
		case first:
			return h, nil
		}
		if reasons := identityReasons(h.state, c); len(reasons) > 0 {
			return nil, errors.Join(refuse(path, reasons), leave(h))
		}
		return h, nil
	}
}

func (h *hold) open(path string, number Number, c Consent) {
	h.file, h.state, h.err = Open(path, c, os.O_RDWR)
	if h.err == nil && h.state.Number != number {
		h.err = errors.Join(refuse(path, []Reason{replaced}), h.file.Close())
	}
}

// join adds a user of a device.
func join(number Number) (h *hold, first bool) {
	held.Lock()
	defer held.Unlock()
	if h = held.devices[number]; h != nil {
		h.users++
		return h, false
	}
	if held.devices == nil {
		held.devices = map[Number]*hold{}
	}
	h = &hold{number: number, ready: make(chan struct{}), users: 1}
	held.devices[number] = h
	return h, true
}

// leave removes a user of a device, and releases the device after the last. A device that was not opened is removed at
// once.
func leave(h *hold) error {
	held.Lock()
	defer held.Unlock()
	h.users--
	if h.users > 0 && h.err == nil {
		return nil
	}
	if held.devices[h.number] == h {
		delete(held.devices, h.number)
	}
	if h.err != nil {
		return nil
	}
	return h.file.Close()
}

// Close releases the devices of the load. It must come after the last write.
func (g *Guard) Close() error {
	var errs []error
	for _, h := range g.holds {
		errs = append(errs, leave(h))
	}
	g.holds = nil
	return errors.Join(errs...)
}
