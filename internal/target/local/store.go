package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/target"
)

// store keeps VMs in one folder:
//
//	<id>.owner          the owner of the VM; appears complete or not at all, before anything else of the VM
//	<id>/vm.json        the VM
//	<id>/sdb, sdc, …    data disks, sparse files
//	<id>/snapshots/N/   copies of the disks
//	<id>/agent.log      output of the VM's process
//	nodes-off.json      nodes that are switched off
//
// Removal is in reverse order, the owner file last, so that a tag finds everything that a crash left.
type store struct{ dir string }

const (
	ownerSuffix    = ".owner"
	recordBytesMax = 1 << 20
)

// owner is the content of an owner file.
type owner struct {
	Format     int       `json:"format"`
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Mark       string    `json:"mark"`
	Controller string    `json:"controller"`
	Run        string    `json:"run"`
	Created    time.Time `json:"created"`
}

// record is the content of vm.json.
type record struct {
	VM   target.VM     `json:"vm"`
	Spec target.VMSpec `json:"spec"`
}

// complete reports whether the creation of the VM was completed: the record is written last.
func (r record) complete() bool { return r.VM.NodeID != "" && len(r.VM.Addresses) > 0 }

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}-[0-9a-f]{16}$`)

// vmID derives the identity of a VM, which is also the name of its folder, from its name and owner. For any name, the
// identity is short and safe for a path, and unique for name and owner.
func vmID(mark, name string) string {
	const prefixMax = 40
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '_'
	}, name[:min(len(name), prefixMax)])
	if safe == "" {
		safe = "vm"
	}
	sum := sha256.Sum256([]byte(mark + "\x00" + name))
	return safe[:min(len(safe), prefixMax)] + "-" + hex.EncodeToString(sum[:8])
}

// openStore creates nothing: opening a target leaves no trace. It refuses a place that cannot hold VMs.
func openStore(dir string) (*store, error) {
	s := &store{dir: dir}
	existing, err := s.existing()
	if err != nil {
		return nil, err
	}
	if err := unix.Access(existing, unix.W_OK); err != nil {
		return nil, fmt.Errorf("use %q for VMs: %w", existing, err)
	}
	return s, nil
}

// make makes the folder before it is written to.
func (s *store) make() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make folder for VMs: %w", err)
	}
	return nil
}

// existing returns the folder, or its nearest parent that exists: the place whose free space counts.
func (s *store) existing() (string, error) {
	for dir := s.dir; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			return dir, nil
		case err == nil:
			return "", fmt.Errorf("use %q for VMs: not a folder", dir)
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return "", fmt.Errorf("use %q for VMs: %w", dir, err)
		}
	}
}

func (s *store) path(id string, parts ...string) string {
	return filepath.Join(append([]string{s.dir, id}, parts...)...)
}

// claim writes the owner file of a new VM. If the VM exists already, it returns an error.
func (s *store) claim(o owner) error {
	text, err := json.Marshal(o)
	if err == nil {
		err = s.make()
	}
	if err != nil {
		return err
	}
	if err := writeOnce(s.dir, o.ID+ownerSuffix, append(text, '\n')); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("it exists already")
	} else if err != nil {
		return err
	}
	return nil
}

// readOwner returns the owner of a VM; fs.ErrNotExist means that the VM does not exist.
func (s *store) readOwner(id string) (owner, error) {
	if !idPattern.MatchString(id) {
		return owner{}, fmt.Errorf("invalid VM identity %q: %w", id, fs.ErrNotExist)
	}
	var o owner
	if err := readJSON(filepath.Join(s.dir, id+ownerSuffix), &o); err != nil {
		return owner{}, err
	}
	if o.ID != id || o.Mark == "" {
		return owner{}, fmt.Errorf("owner file of %q names %q", id, o.ID)
	}
	return o, nil
}

// check returns nil if the VM exists and carries the tag, errGone if it does not exist.
func (s *store) check(id string, tag target.Tag) error {
	if err := tag.Check(); err != nil {
		return err
	}
	o, err := s.readOwner(id)
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	if err != nil || o.Mark != tag.Mark() {
		return target.Foreign(fmt.Sprintf("vm %q", id))
	}
	return nil
}

var errGone = errors.New("it does not exist")

// owned lists the identities of all VMs that carry the tag.
func (s *store) owned(tag target.Tag) ([]owner, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	mark := tag.Mark()
	var found []owner
	for _, e := range entries {
		id, isOwner := strings.CutSuffix(e.Name(), ownerSuffix)
		if !isOwner || !e.Type().IsRegular() {
			continue
		}
		// A VM with an unreadable owner is skipped: it may belong to another run.
		if o, err := s.readOwner(id); err == nil && o.Mark == mark {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b owner) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func (s *store) writeRecord(id string, r record) error {
	return replaceJSON(s.path(id, "vm.json"), r)
}

// readRecord returns the record of a VM; if its creation was interrupted, only its identity.
func (s *store) readRecord(o owner) record {
	var r record
	folder, err := os.Lstat(s.path(o.ID))
	if err == nil && !folder.IsDir() {
		err = fmt.Errorf("%q is not a folder", s.path(o.ID)) // a link would lead to files of others
	}
	if err == nil {
		err = readJSON(s.path(o.ID, "vm.json"), &r)
	}
	if err != nil || r.VM.ID != o.ID || len(r.VM.Disks) > disksMax {
		return record{VM: target.VM{ID: o.ID, Name: o.Name, Disks: []target.Disk{}}}
	}
	// Paths follow from the folder's place: it may have been moved, and a record must not lead anywhere else.
	for i := range r.VM.Disks {
		r.VM.Disks[i].Device, r.VM.Disks[i].Path = "/dev/"+target.DiskName(i+1), s.path(o.ID, target.DiskName(i+1))
	}
	return r
}

// remove deletes the folder of a VM and then its owner file.
func (s *store) remove(id string) error {
	if err := os.RemoveAll(s.path(id)); err != nil {
		return fmt.Errorf("remove folder: %w", err)
	}
	if err := os.Remove(filepath.Join(s.dir, id+ownerSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove owner file: %w", err)
	}
	return nil
}

func (s *store) nodesOffPath() string { return filepath.Join(s.dir, "nodes-off.json") }

func (s *store) readNodesOff() (map[string]bool, error) {
	off := map[string]bool{}
	if err := readJSON(s.nodesOffPath(), &off); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read which nodes are off: %w", err)
	}
	return off, nil
}

func (s *store) writeNodesOff(off map[string]bool) error {
	if len(off) == 0 {
		for _, path := range []string{s.nodesOffPath() + newSuffix, s.nodesOffPath()} { // one that was killed leaves the first
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("record that all nodes are on: %w", err)
			}
		}
		return nil
	}
	if err := s.make(); err != nil {
		return err
	}
	return replaceJSON(s.nodesOffPath(), off)
}
