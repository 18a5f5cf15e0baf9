package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks are the clock ticks of a second in /proc/PID/stat; Linux has no other value for programs.
const ticks = 100

// groupRoot is the folder below which control groups can be made; "": nowhere. On machines with both versions of control groups, that of
// version 2 has no controllers, but CPU time is counted without one.
func groupRoot() string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	place := ""
	for line := range strings.Lines(string(own)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			place = rest
		}
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			root := filepath.Join(fields[1], place)
			probe := filepath.Join(root, fmt.Sprint("bragg-profile-probe-", os.Getpid()))
			if os.Mkdir(probe, 0o755) == nil {
				_ = os.Remove(probe)
				return root
			}
		}
	}
	return ""
}

// sources says where the numbers come from.
func sources(group string, events bool) string {
	cpu := "/proc/PID/stat of the test binary and of the children that it waited for (no control group of version 2 can be made here)"
	written := "/proc/PID/io of the test binary and of the children that it waited for"
	if group != "" {
		cpu = "cpu.stat and cpu.pressure of a control group (version 2) below " + group
		if hasIO(group) {
			written = "io.stat of that control group"
		} else {
			written += " (control groups have no io.stat here)"
		}
	}
	processes := "the kernel's process events"
	if !events {
		processes = fmt.Sprintf("/proc every %v, so short ones are missing (process events need root)", lookEvery)
	}
	return "CPU time: " + cpu + ". Written: " + written + ". Processes: " + processes +
		". Waiting is wall time without CPU time; starved is the part of it in which a process could run and had no CPU."
}

// hasIO reports whether groups below a folder count their I/O.
func hasIO(group string) bool {
	text, err := os.ReadFile(filepath.Join(group, "cgroup.subtree_control"))
	return err == nil && bytes.Contains(text, []byte("io"))
}

// meters are the counters of one test binary and of what it starts. They grow while it runs.
type meters struct {
	pid   int
	group string // folder of its control group; "": none
	forks func() int
}

// read returns the counters up to now, without wall time.
func (m *meters) read() (c cost) {
	c.Written = m.written()
	c.Processes = m.forks()
	if m.group == "" {
		c.CPU = treeTime(m.pid)
		return c
	}
	c.CPU = time.Duration(field(filepath.Join(m.group, "cpu.stat"), "usage_usec ")) * time.Microsecond
	c.Starved = time.Duration(field(filepath.Join(m.group, "cpu.pressure"), "total=")) * time.Microsecond
	return c
}

func (m *meters) written() (sum int64) {
	if m.group != "" {
		if text, err := os.ReadFile(filepath.Join(m.group, "io.stat")); err == nil {
			for word := range strings.FieldsSeq(string(text)) {
				if number, ok := strings.CutPrefix(word, "wbytes="); ok {
					n, _ := strconv.ParseInt(number, 10, 64)
					sum += n
				}
			}
			return sum
		}
	}
	// The kernel adds the counters of a child to those of its parent when the parent waits for it.
	return field(fmt.Sprintf("/proc/%d/io", m.pid), "\nwrite_bytes: ")
}

// field returns the number behind the first occurrence of a name; 0 where a file is missing.
func field(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), name)
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		rest = rest[:end]
	}
	n, _ := strconv.ParseInt(rest, 10, 64)
	return n
}

// treeTime is the CPU time of a process and of the children that it waited for.
func treeTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return 0
	}
	var sum int64
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime (proc_pid_stat(5))
		n, _ := strconv.ParseInt(f, 10, 64)
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks
}

// left lists the processes of a control group.
func left(group string) (list []string) {
	text, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		return nil
	}
	for pid := range strings.FieldsSeq(string(text)) {
		command, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err == nil {
			list = append(list, pid+" "+strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " ")))
		}
	}
	return list
}
