package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
)

// usage records how this machine was used: before the run, and by NUMA node in its run phase. On the local target it is the machine
// of the load and of the disks.
type usage struct {
	record *recorder
	began  []cpuTime // of each NUMA node, at the start of the run phase
}

// follow takes the events of the run, in order.
func (u *usage) follow(e interval.Event) {
	switch {
	case e.Kind == interval.EventRunStarted:
		u.say(interval.Usage{CPUWaiting: pressure("/proc/pressure/cpu"), IOWaiting: pressure("/proc/pressure/io")})
	case e.Kind == interval.EventPhaseStarted && e.Phase == "run":
		u.began = cpuTimes("/")
	case e.Kind == interval.EventPhaseEnded && e.Phase == "run":
		if busy := busyShares(u.began, cpuTimes("/")); busy != nil {
			u.say(interval.Usage{Busy: busy})
		}
	}
}

func (u *usage) say(used interval.Usage) {
	u.record.Event(interval.Event{AtNanos: u.record.now(), Kind: interval.EventUsage, Subject: interval.Controller, Usage: &used})
}

// pressure returns the share of the last minute in which at least one task waited, from a file of pressure stall information:
// "some avg10=0.00 avg60=1.50 …". It is 0 if the kernel does not count it.
func pressure(path string) float64 {
	var short, minute float64
	if _, err := fmt.Sscanf(firstLine(path), "some avg10=%f avg60=%f", &short, &minute); err != nil {
		return 0
	}
	return minute / 100
}

// cpuTime is time of several CPUs, in ticks.
type cpuTime struct{ busy, all uint64 }

// cpuTimes reads the CPU time of each NUMA node, or of the machine if it has none. It is nil if that cannot be read.
func cpuTimes(root string) []cpuTime {
	text, err := os.ReadFile(filepath.Join(root, "proc/stat"))
	if err != nil {
		return nil
	}
	nodeOf := map[string]int{} // CPU → node
	lists, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node[0-9]*/cpulist"))
	for node, list := range lists {
		for part := range strings.SplitSeq(firstLine(list), ",") {
			first, last, isRange := strings.Cut(part, "-")
			from, err := strconv.Atoi(first)
			to := from
			if isRange {
				to, _ = strconv.Atoi(last)
			}
			for cpu := from; err == nil && cpu <= to; cpu++ {
				nodeOf["cpu"+strconv.Itoa(cpu)] = node
			}
		}
	}
	times := make([]cpuTime, max(1, len(lists)))
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.HasPrefix(fields[0], "cpu") || fields[0] == "cpu" {
			continue
		}
		t := &times[nodeOf[fields[0]]]
		for i, field := range fields[1:min(len(fields), 9)] { // user nice system idle iowait irq softirq steal
			ticks, _ := strconv.ParseUint(field, 10, 64)
			t.all += ticks
			if i != 3 && i != 4 {
				t.busy += ticks
			}
		}
	}
	return times
}

// busyShares returns the share of CPU time used between two readings.
func busyShares(from, to []cpuTime) []float64 {
	if len(from) == 0 || len(from) != len(to) {
		return nil
	}
	shares := make([]float64, len(to))
	for i := range to {
		if all := to[i].all - from[i].all; all > 0 {
			shares[i] = float64(to[i].busy-from[i].busy) / float64(all)
		}
	}
	return shares
}
