//go:build linux

package hostvm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/target"
)

// info describes this machine; dir is the current or future folder of its VMs.
func (s *server) info(dir string) (*Info, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(dir), &fs); err != nil {
		return nil, fmt.Errorf("read free space of %q: %w", filepath.Dir(dir), err)
	}
	i := &Info{
		Version: s.program.Version, User: os.Getuid(), CPUs: runtime.NumCPU(), Folder: dir,
		// As df counts: blocks reserved for root are neither free nor used, and not part of the total.
		FreeBytes: int64(fs.Bavail) * fs.Bsize, TotalBytes: int64(fs.Blocks-fs.Bfree+fs.Bavail) * fs.Bsize,
		Boot: text("/proc/sys/kernel/random/boot_id"), Kernel: text("/proc/sys/kernel/osrelease"),
		UUID: text("/sys/class/dmi/id/product_uuid"), Serial: text("/sys/class/dmi/id/product_serial"),
	}
	var folder unix.Stat_t
	if unix.Stat(filepath.Dir(dir), &folder) == nil {
		i.Device = uint64(folder.Dev) //nolint:unconvert // has another width on other platforms
	}
	i.Hostname, _ = os.Hostname()
	i.Network, _ = os.Readlink("/proc/self/ns/net")
	var memory unix.Sysinfo_t
	if unix.Sysinfo(&memory) == nil {
		i.RAMBytes = int64(memory.Totalram) * int64(memory.Unit)
	}
	i.Facts = []target.Fact{{Name: "kernel", Value: i.Kernel}, {Name: "file system of VMs", Value: fsName(fs.Type)}}
	return i, nil
}

// text returns the only line of a small system file, "" if it cannot be read.
func text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// fsName names a file system by its number in statfs(2).
func fsName(number int64) string {
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs (memory)",
		unix.NFS_SUPER_MAGIC: "NFS", unix.OVERLAYFS_SUPER_MAGIC: "overlay", 0x2fc12fc1: "ZFS", 0x00c36400: "CephFS", 0x19830326: "BeeGFS",
		0x0bd00bd0: "Lustre", unix.FUSE_SUPER_MAGIC: "FUSE",
	}
	if name := names[number]; name != "" {
		return name
	}
	return fmt.Sprintf("type 0x%x", number)
}

// meter measures the use of this machine, as averages since the previous reading.
type meter struct {
	node string

	mu   sync.Mutex
	last *reading
}

// reading is the state of the system's counters.
type reading struct {
	at             time.Time
	busy, total    float64 // CPU seconds
	received, sent float64 // bytes, of the interfaces to the outside
}

// newMeter begins to count. If the system cannot be read, the first sample reports the error.
func newMeter(node string) *meter {
	m := &meter{node: node}
	if fs, err := procfs.NewDefaultFS(); err == nil {
		m.last, _ = read(fs)
	}
	return m
}

func read(fs procfs.FS) (*reading, error) {
	stat, err := fs.Stat()
	if err != nil {
		return nil, err
	}
	devices, err := fs.NetDev()
	if err != nil {
		return nil, err
	}
	c := stat.CPUTotal
	r := &reading{at: time.Now(), busy: c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal}
	r.total = r.busy + c.Idle + c.Iowait
	for _, name := range outward("/sys/class/net", slices.Collect(maps.Keys(devices))) {
		r.received += float64(devices[name].RxBytes)
		r.sent += float64(devices[name].TxBytes)
	}
	return r, nil
}

// outward returns the interfaces through which data enters and leaves a machine: those of hardware. Bonds, bridges, VLANs
// and tunnels carry the same bytes once more, and a virtual function is included in its port. Without a port, as in a
// container, they are all except the loopback. sys is the directory in which the system describes interfaces.
func outward(sys string, names []string) []string {
	var hardware, others []string
	for _, name := range names {
		_, missing := os.Stat(filepath.Join(sys, name, "device"))
		_, whole := os.Stat(filepath.Join(sys, name, "device", "physfn"))
		switch {
		case missing == nil && whole != nil:
			hardware = append(hardware, name)
		case name != "lo":
			others = append(others, name)
		}
	}
	if len(hardware) > 0 {
		return hardware
	}
	return others
}

// sample returns the cluster metrics of a node, as averages since the previous call; nothing if no time has passed.
func (m *meter) sample() ([]target.NodeSample, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("sample node %q: %w", m.node, err)
	}
	now, err := read(fs)
	if err != nil {
		return nil, fmt.Errorf("sample node %q: %w", m.node, err)
	}
	m.mu.Lock()
	before := m.last
	m.last = now
	m.mu.Unlock()
	if before == nil || now.total <= before.total {
		return nil, nil
	}
	share := (now.busy - before.busy) / (now.total - before.total)
	seconds := now.at.Sub(before.at).Seconds()
	var samples []target.NodeSample
	add := func(metric string, value float64, unit string) {
		samples = append(samples, target.NodeSample{NodeID: m.node, Metric: metric, At: now.at, Value: value, UnitSymbol: unit})
	}
	add("CpuUsage.Avg.Percent", 100*share, "%")
	add("CpuUsage.Avg.Megahertz", share*megahertz(fs), "MHz")
	if memory, err := fs.Meminfo(); err == nil && memory.MemTotal != nil && memory.MemAvailable != nil && *memory.MemTotal > 0 {
		add("MemUsage.Avg.Percent", 100*(1-float64(*memory.MemAvailable)/float64(*memory.MemTotal)), "%")
	}
	add("NetReceived.Avg.KilobytesPerSecond", rate(before.received, now.received, seconds), "KiB/s")
	add("NetTransmitted.Avg.KilobytesPerSecond", rate(before.sent, now.sent, seconds), "KiB/s")
	return samples, nil
}

// rate is in KiB per second. When an interface disappears, its counter does too.
func rate(before, now, seconds float64) float64 { return max(0, now-before) / seconds / 1024 }

// megahertz returns the sum of the clock rates of all CPUs that the system reports.
func megahertz(fs procfs.FS) float64 {
	infos, err := fs.CPUInfo()
	if err != nil {
		return 0
	}
	var sum float64
	for _, i := range infos {
		sum += i.CPUMHz
	}
	return sum
}
