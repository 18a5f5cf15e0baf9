package program

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
)

// volume is a disk that is a block device, with the file system of a room.
type volume struct {
	folder  string // in the room
	device  load.Device
	id      string // UUID of its file system
	files   FileSystem
	mkfs    string // path of its program, for a prefill
	mounted string // what the kernel says of its mount, "" while it has none
}

// volumeID is the UUID of the file system that a prefill of this run makes: a load mounts no other, so that files of the user or of another
// generator are never taken for those of the run. VMs that are clones of the prefilled one have it too, because they have its data.
func volumeID(w *load.Workload, room, disk string) string {
	seed := binary.LittleEndian.AppendUint64(nil, w.Seed)
	sum := sha256.Sum256(append(seed, "file system of "+room+" on "+disk...))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8, RFC 9562: made by a rule of its own
	text := hex.EncodeToString(b)
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

// admit checks that the device may be used, as native I/O does: what is lost by making a file system needs the consent of the user. It
// returns a descriptor that does not hold the device, for programs that take it exclusively themselves.
func (v *volume) admit(fill bool) (*os.File, error) {
	consent := v.device.Consent
	at, err := v.found()
	if err != nil {
		return nil, err
	}
	if at != "" { // the run's own
		consent.Overwrite = append(slices.Clone(consent.Overwrite), at)
	}
	held, _, err := blockdev.Open(v.device.Path, consent, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if !fill && at != v.files.Type {
		found := "no file system that a prefill of this run made"
		if at != "" {
			found = fmt.Sprintf("%s of the prefill, and this load wants %s", at, v.files.Type)
		}
		return nil, &diag.Error{Code: "no-file-system", Exit: diag.ExitData, Message: fmt.Sprintf("disk %s has %s", v.device.Name, found),
			Hint: "add workload.PrefillRun of this workload, or of one with the same generator, disks and file_system, before the load"}
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", held.Fd()), os.O_RDWR, 0)
}

// superblocks have the places of the magic number and of the UUID of each type: fs/ext4/ext4.h and fs/xfs/libxfs/xfs_format.h of Linux.
var superblocks = map[string]struct {
	magicAt, idAt int64
	magic         string
}{"ext4": {1024 + 0x38, 1024 + 0x68, "\x53\xef"}, "xfs": {0, 32, "XFSB"}}

// found returns the type of the file system on the device if it is the volume's own, "" if there is none or another.
func (v *volume) found() (string, error) {
	f, err := os.Open(v.device.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	want, _ := hex.DecodeString(strings.ReplaceAll(v.id, "-", ""))
	for kind, at := range superblocks {
		magic, id := make([]byte, len(at.magic)), make([]byte, len(want))
		if _, err := f.ReadAt(magic, at.magicAt); err != nil {
			return "", fmt.Errorf("read %q: %w", v.device.Path, err)
		}
		if _, err := f.ReadAt(id, at.idAt); err != nil {
			return "", fmt.Errorf("read %q: %w", v.device.Path, err)
		}
		if string(magic) == at.magic && string(id) == string(want) {
			return kind, nil
		}
	}
	return "", nil
}

// formatMax bounds how long making a file system may take.
const formatMax = 30 * time.Minute

// format makes the file system.
func (v *volume) format(said io.Writer) (device *os.File, err error) {
	if device, err = v.admit(true); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), formatMax)
	defer cancel()
	c := v.files.command(v.mkfs, v.id)
	c.Files = []*os.File{device}
	fmt.Fprintf(said, "$ %s\n", strings.Replace(c.String(), Inherited(0), v.device.Name, 1))
	out, err := c.Run(ctx)
	fmt.Fprint(said, out)
	if err != nil {
		_ = device.Close()
		return nil, fmt.Errorf("make a file system on disk %s: %w", v.device.Name, err)
	}
	return device, nil
}

// volumes are the disks of a room, mounted below its folder for programs of the room alone.
type volumes struct {
	list  []*volume
	space *mountSpace
	said  io.Writer
}

// openVolumes checks the devices and, for a load, mounts them. A prefill writes nothing yet.
func openVolumes(w *load.Workload, room string, name RoomName, devices []load.Device) (vs *volumes, err error) {
	vs = &volumes{said: name.Said}
	if vs.said == nil {
		vs.said = io.Discard
	}
	for _, d := range devices {
		v := &volume{folder: filepath.Join(room, DiskFolder(d.Name)), device: d, id: volumeID(w, name.Name, d.Name), files: *name.FileSystem}
		if w.Prefill {
			if v.mkfs, err = v.files.findMkfs(); err != nil {
				return nil, err
			}
		}
		vs.list = append(vs.list, v)
	}
	if vs.space, err = openMountSpace(room); err != nil {
		return nil, err
	}
	for _, v := range vs.list {
		device, err := v.admit(w.Prefill)
		if err == nil && !w.Prefill {
			err = vs.mount(v, device)
		}
		if device != nil {
			_ = device.Close()
		}
		if err != nil {
			_ = vs.close()
			return nil, err
		}
	}
	return vs, nil
}

// mount mounts a volume and notes how.
func (vs *volumes) mount(v *volume, device *os.File) error {
	if err := os.Mkdir(v.folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	got, err := vs.space.mount(device, v.folder, v.files)
	if err != nil {
		return fmt.Errorf("mount disk %s as %s: %w", v.device.Name, v.files, err)
	}
	v.mounted = got
	fmt.Fprintf(vs.said, "disk %s: %s\n", v.device.Name, got)
	return nil
}

// of returns the volume of a folder of the room, nil for any other.
func (vs *volumes) of(folder string) *volume {
	if vs == nil {
		return nil
	}
	i := slices.IndexFunc(vs.list, func(v *volume) bool { return v.folder == folder })
	if i < 0 {
		return nil
	}
	return vs.list[i]
}

// empty makes a new file system in place of the former one.
func (vs *volumes) empty(v *volume) error {
	if v.mkfs == "" {
		return fmt.Errorf("disk %s is emptied by a prefill only", v.device.Name)
	}
	if v.mounted != "" {
		if err := vs.space.unmount(v.folder); err != nil {
			return err
		}
		v.mounted = ""
	}
	device, err := v.format(vs.said)
	if err != nil {
		return err
	}
	defer device.Close()
	return vs.mount(v, device)
}

// close unmounts all volumes and releases their devices.
func (vs *volumes) close() (err error) {
	if vs == nil {
		return nil
	}
	for _, v := range slices.Backward(vs.list) {
		if v.mounted == "" {
			continue
		}
		if failed := vs.space.unmount(v.folder); failed != nil && err == nil {
			err = fmt.Errorf("unmount disk %s: %w", v.device.Name, failed)
		}
		v.mounted = ""
	}
	vs.space.close()
	return err
}
