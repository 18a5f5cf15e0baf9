package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
)

// machine is where process ids mean something: one boot of one kernel, and one PID namespace.
type machine struct {
	Boot      string `json:"boot"`
	Processes string `json:"processes"`
}

// process is one process, and no later one with the same id.
type process struct {
	ID    int    `json:"id"`
	Start uint64 `json:"start"` // ticks since boot
}

// stateBytesMax bounds what is read of a state file.
const stateBytesMax = 1 << 20

// save writes the description of a lab, whole or not at all.
func (l *Lab) save() error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(l.Dir, stateFile)
	if err := durable.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("record lab %q: %w", l.Name, err)
	}
	return nil
}

// errNoLab is the error for a folder that is none of a lab, or where none is.
var errNoLab = errors.New("no lab")

// load reads the description of the lab in a folder. Nothing is done to a folder that has none.
func load(labs, name string) (*Lab, error) {
	dir := filepath.Join(labs, name)
	text, err := readSmall(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoLab
	}
	if err != nil {
		return nil, err
	}
	l := &Lab{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, foreign(dir, fmt.Sprintf("invalid %s: %v", stateFile, err))
	}
	switch {
	case l.Format != stateFormat:
		return nil, foreign(dir, fmt.Sprintf("its %s has format %d, and this program knows %d", stateFile, l.Format, stateFormat))
	case l.Dir != dir || l.Name != name:
		return nil, foreign(dir, fmt.Sprintf("its %s describes a lab %q in %q", stateFile, l.Name, l.Dir))
	}
	return l, nil
}

func readSmall(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > stateBytesMax {
		return nil, fmt.Errorf("read %s: not a small regular file", path)
	}
	return os.ReadFile(path)
}

// foreign is the error for a folder that is not a lab's.
func foreign(dir, why string) error {
	return &diag.Error{
		Code: "lab-foreign-folder", Exit: diag.ExitRefused, Message: fmt.Sprintf("folder %s is skipped: %s", dir, why),
		Hint: "remove it by hand if it is not needed",
	}
}

// Labs lists the labs of a directory, dead ones too, by name. It skips other entries.
func Labs(labs string) ([]*Lab, error) {
	entries, err := os.ReadDir(labs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	var all []*Lab
	for _, e := range entries {
		if !e.IsDir() || !plainName.MatchString(e.Name()) {
			continue
		}
		l, err := load(labs, e.Name())
		if err == nil {
			all = append(all, l)
		}
	}
	return all, nil
}

// Find returns a running lab.
func Find(labs, name string) (*Lab, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	l, err := load(labs, name)
	if err != nil && !errors.Is(err, errNoLab) {
		return nil, err
	}
	if err != nil || !l.Alive() {
		return nil, &diag.Error{
			Code: "lab-not-up", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("lab %q is not up", name),
			Hint: "bragg-lab up " + strings.TrimSpace(nameFlag(name)),
		}
	}
	return l, nil
}

func nameFlag(name string) string {
	if name == nameDefault {
		return ""
	}
	return "--name " + name
}

// LastWords returns the ends of a lab's logs.
func (l *Lab) LastWords() string {
	paths := []string{l.log()}
	for _, h := range l.Hosts {
		paths = append(paths, filepath.Join(h.Dir, "host.log"), filepath.Join(h.Dir, "log", "libvirtd.log"))
	}
	const bytesMax = 1500
	var b strings.Builder
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil || len(text) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s:\n%s", filepath.Base(p), text[max(0, len(text)-bytesMax):])
	}
	return b.String()
}
