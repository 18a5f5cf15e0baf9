//go:build !linux

package blockdev

import (
	"errors"
	"fmt"
	"os"

	"github.com/braggdev/bragg/internal/extent"
)

// Examine describes the file or device at a path. On this system it cannot examine devices, which is a fault that Check
// refuses.
func Examine(path string) (State, error) {
	info, err := os.Stat(path)
	if err != nil {
		return State{}, fmt.Errorf("examine %q: %w", path, err)
	}
	return plain(path, info), nil
}

func plain(path string, info os.FileInfo) State {
	state := State{Path: path, Node: path, Kind: Other, SizeBytes: info.Size()}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		state.Kind = Regular
	case mode&os.ModeCharDevice != 0:
		state.Kind = Character
	case mode&os.ModeDevice != 0:
		state.Kind = Block
		state.Faults = []string{"devices cannot be examined on this system"}
	}
	return state
}

// Open opens an existing regular file. On this system, it refuses to open devices for writing.
func Open(path string, consent Consent, flags int) (*os.File, State, error) {
	if flags&(os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0 {
		return nil, State{}, fmt.Errorf("open %q: a device is not created, cut or appended to", path)
	}
	before, err := Examine(path)
	if err == nil && flags&(os.O_WRONLY|os.O_RDWR) != 0 {
		err = Check(before, consent)
	}
	if err != nil {
		return nil, before, err
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, before, err
	}
	info, err := f.Stat()
	if err == nil && plain(path, info).Kind != before.Kind {
		err = refuse(path, []Reason{{Code: "changed", Text: "it is not any more what it was a moment ago"}})
	}
	if err != nil {
		f.Close()
		return nil, before, err
	}
	return f, before, nil
}

// InMemory cannot find it out on this system.
func InMemory(*os.File) string { return "" }

// ReadWarning is not supported on this system.
func ReadWarning(*os.File, []extent.Extent) (int64, error) { return 0, errors.ErrUnsupported }

func forgetPartitions(medium) {}
