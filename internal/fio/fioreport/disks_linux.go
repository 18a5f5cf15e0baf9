package fioreport

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Disks reads the counters of the devices that hold files. The zero value has no devices.
type Disks struct {
	mu     sync.Mutex
	before []Disk // by name
}

// Add adds the devices of files that it does not have yet; their counters start now.
func (d *Disks) Add(paths []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, path := range paths {
		name, ok := diskOf(path)
		if !ok || slices.ContainsFunc(d.before, func(k Disk) bool { return k.Name == name }) {
			continue
		}
		if counters, err := readDisk(name); err == nil {
			d.before = append(d.before, counters)
		}
	}
	slices.SortFunc(d.before, func(a, b Disk) int { return strings.Compare(a.Name, b.Name) })
}

// Used returns what the devices did since they were added.
func (d *Disks) Used(elapsed time.Duration) []Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Disk
	for _, before := range d.before {
		now, err := readDisk(before.Name)
		if err != nil {
			continue
		}
		used := now.Minus(&before)
		if elapsed > 0 {
			used.Utilization = min(100, 100*float64(used.Busy)/float64(elapsed.Milliseconds()+1))
		}
		out = append(out, used)
	}
	return out
}

// diskOf names the block device that holds a file or is the file; for a partition, the whole disk.
func diskOf(path string) (string, bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", false
	}
	number := st.Dev
	if st.Mode&unix.S_IFMT == unix.S_IFBLK {
		number = st.Rdev
	}
	link := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(number), unix.Minor(number))
	real, err := filepath.EvalSymlinks(link)
	if err != nil {
		return "", false
	}
	if _, err := os.Stat(filepath.Join(real, "partition")); err == nil {
		real = filepath.Dir(real)
	}
	return filepath.Base(real), true
}

// readDisk reads /sys/block/NAME/stat; see the kernel's documentation of block/stat.
func readDisk(name string) (Disk, error) {
	text, err := os.ReadFile(filepath.Join("/sys/block", name, "stat"))
	if err != nil {
		return Disk{}, err
	}
	var n [11]uint64
	fields := strings.Fields(string(text))
	if len(fields) < len(n) {
		return Disk{}, fmt.Errorf("read counters of %s: %q", name, text)
	}
	for i := range n {
		if n[i], err = strconv.ParseUint(fields[i], 10, 64); err != nil {
			return Disk{}, err
		}
	}
	return Disk{
		Name: name, Reads: n[0], ReadMerges: n[1], ReadSectors: n[2], ReadMillis: n[3], Writes: n[4], WriteMerges: n[5],
		WriteSectors: n[6], WriteMillis: n[7], Busy: n[9], QueueMillis: n[10],
	}, nil
}
