package local

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroups gives each VM a control group (version 2) if the system allows it: for its limits, for the CPU time of the VM
// with all children, and to kill all of it in one write. Everything works without groups, but less exactly.
type cgroups struct {
	base   string // folder below which groups are made; empty: no groups
	cpu    bool   // CPU limits are available
	memory bool
	reason string // why base is empty, or which limits are missing
}

const (
	cpuPeriodMicros = 100_000
	memoryBytesMin  = 128 << 20 // an agent needs at least this to start
)

func openCgroups() *cgroups {
	if os.Geteuid() != 0 {
		return &cgroups{reason: "not root"}
	}
	mount := cgroupMount("/proc/self/mountinfo")
	if mount == "" {
		return &cgroups{reason: "no cgroup file system of version 2"}
	}
	return openCgroupsAt(mount)
}

// openCgroupsAt uses the hierarchy at mount: groups are made below a folder of Bragg at its root, the only place where a
// group may have both processes and limits for its children.
func openCgroupsAt(mount string) *cgroups {
	base := filepath.Join(mount, "bragg")
	if err := os.Mkdir(base, 0o755); err != nil && !os.IsExist(err) {
		return &cgroups{reason: "cgroups cannot be made"}
	}
	g := &cgroups{base: base}
	g.forgetOld(time.Now())
	g.cpu, g.memory = delegate(mount, base, "cpu"), delegate(mount, base, "memory")
	switch {
	case !g.cpu && !g.memory:
		g.reason = "the cpu and memory controllers are not in version 2 here"
	case !g.cpu:
		g.reason = "the cpu controller is not in version 2 here"
	case !g.memory:
		g.reason = "the memory controller is not in version 2 here"
	}
	return g
}

// delegate makes a controller available below base.
func delegate(mount, base, controller string) bool {
	for _, dir := range []string{mount, base} {
		available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil || !slices.Contains(strings.Fields(string(available)), controller) {
			return false
		}
		control := filepath.Join(dir, "cgroup.subtree_control")
		enabled, err := os.ReadFile(control)
		if err != nil {
			return false
		}
		if !slices.Contains(strings.Fields(string(enabled)), controller) &&
			os.WriteFile(control, []byte("+"+controller), 0o644) != nil {
			return false
		}
	}
	return true
}

func cgroupMount(mountinfo string) string {
	f, err := os.Open(mountinfo)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		before, after, found := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if found && strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			return fields[4]
		}
	}
	return ""
}

// make makes the group of a VM with its limits, and opens it.
func (g *cgroups) make(id string, vcpus int, ramBytes int64) (*os.File, error) {
	if g.base == "" {
		return nil, os.ErrNotExist
	}
	dir := filepath.Join(g.base, id)
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return nil, err
	}
	if g.cpu && vcpus > 0 {
		limit := fmt.Sprintf("%d %d", vcpus*cpuPeriodMicros, cpuPeriodMicros)
		if err := os.WriteFile(filepath.Join(dir, "cpu.max"), []byte(limit), 0o644); err != nil {
			return nil, err
		}
	}
	if g.memory && ramBytes > 0 {
		limit := strconv.FormatInt(max(ramBytes, memoryBytesMin), 10)
		if err := os.WriteFile(filepath.Join(dir, "memory.max"), []byte(limit), 0o644); err != nil {
			return nil, err
		}
	}
	return os.Open(dir)
}

// kill ends all processes of a group, including those that left the VM's session.
func (g *cgroups) kill(group string) {
	if group != "" {
		_ = os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0o644) // since Linux 5.14; signals follow in any case
	}
}

// remove removes the group of a VM whose processes were killed. The kernel keeps a group busy until its last thread has
// ended, shortly after the process was waited for.
func (g *cgroups) remove(id string) {
	const (
		triesMax = 200
		pause    = 5 * time.Millisecond
	)
	if g.base == "" {
		return
	}
	dir := filepath.Join(g.base, id)
	for range triesMax {
		err := os.Remove(dir)
		if !errors.Is(err, syscall.EBUSY) {
			return
		}
		g.kill(dir)
		time.Sleep(pause)
	}
}

// forgetOld removes groups of a controller that was killed, if its run was then deleted by hand. A group exists only while
// its VM runs; an old one without a process is not in use.
func (g *cgroups) forgetOld(now time.Time) {
	const ageMin = time.Minute
	dirs, err := os.ReadDir(g.base)
	if err != nil {
		return
	}
	for _, d := range dirs {
		info, err := d.Info()
		if err == nil && d.IsDir() && now.Sub(info.ModTime()) > ageMin {
			_ = os.Remove(filepath.Join(g.base, d.Name())) // the kernel refuses this while the group has a process
		}
	}
}

// cpuMicros returns the CPU time of a group, including ended processes.
func cpuMicros(group string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "usage_usec "); ok {
			micros, err := strconv.ParseInt(value, 10, 64)
			return micros, err == nil
		}
	}
	return 0, false
}

func (g *cgroups) describe() string {
	var limits []string
	if g.cpu {
		limits = append(limits, "CPU time")
	}
	if g.memory {
		limits = append(limits, "memory")
	}
	if len(limits) == 0 {
		return "threads only (GOMAXPROCS): " + g.reason
	}
	text := strings.Join(limits, " and ") + " by cgroup"
	if g.reason != "" {
		text += "; " + g.reason
	}
	return text
}
