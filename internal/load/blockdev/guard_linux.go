package blockdev

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func kindAt(path string) (Kind, Number, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Other, Number{}, &os.PathError{Op: "examine", Path: path, Err: err}
	}
	return kindOf(st.Mode), numberOf(st.Rdev), nil
}

// fileLook is one scan of how files of this machine are in use. A load may have thousands of files, and a scan reads a lot.
type fileLook struct {
	taken bool
	stack stack
	err   error
}

// check refuses a regular file that is in use as a device.
func (l *fileLook) check(path string) error {
	if !l.taken {
		s := host()
		s.loopFile = remembered(s.loopFile)
		l.stack, l.err = s.stack()
		l.taken = true
	}
	state := State{Path: path, Kind: Regular}
	var st unix.Stat_t
	node, err := filepath.EvalSymlinks(path)
	if err == nil {
		err = unix.Stat(node, &st)
	}
	if err != nil {
		return &os.PathError{Op: "examine", Path: path, Err: err}
	}
	if l.err != nil {
		state.Faults = append(state.Faults, "its users are unknown: "+l.err.Error())
	} else {
		state.Uses = l.stack.fileUses(node, fileID(st), true)
	}
	return Check(state, Consent{})
}

// remembered caches the file of each loop device.
func remembered(ask func(string) (FileID, bool)) func(string) (FileID, bool) {
	type answer struct {
		file  FileID
		known bool
	}
	seen := map[string]answer{}
	return func(name string) (FileID, bool) {
		a, ok := seen[name]
		if !ok {
			a.file, a.known = ask(name)
			seen[name] = a
		}
		return a.file, a.known
	}
}
