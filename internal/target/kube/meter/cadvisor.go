package meter

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// scrape is what a kubelet says of the control groups of its node. Counters are in the units of their names.
type scrape struct {
	now    time.Time // by the node's clock; zero: it does not say
	cores  float64   // 0: it does not say
	memory float64   // of the machine, bytes; 0: it does not say
	// diskIO: the kernel counts I/O for each control group. It lists only devices that a group has used.
	diskIO bool
	groups map[string]*group // by path, "/" is the machine
}

// group is one control group.
type group struct {
	ofPod   bool                          // it is that of a whole pod
	values  map[string]reading            // by name of the metric
	devices map[string]map[string]reading // by name of the metric, by device or interface
}

// reading is one value.
type reading struct {
	value float64
	at    time.Time // by the node's clock
	again bool      // of a counter: it was read before, and has not restarted since
}

// The metrics of cAdvisor that are read.
const (
	cpuSeconds       = "container_cpu_usage_seconds_total"
	cfsPeriods       = "container_cpu_cfs_periods_total"
	throttledPeriods = "container_cpu_cfs_throttled_periods_total"
	workingSet       = "container_memory_working_set_bytes"
	received         = "container_network_receive_bytes_total"
	transmitted      = "container_network_transmit_bytes_total"
	diskReads        = "container_fs_reads_total"
	diskWrites       = "container_fs_writes_total"
	diskReadBytes    = "container_fs_reads_bytes_total"
	diskWritten      = "container_fs_writes_bytes_total"
	lastSeen         = "container_last_seen" // has the time of the answer
	machineCores     = "machine_cpu_cores"
	machineMemory    = "machine_memory_bytes"
)

// deviceLabel is the label that distinguishes the values of one group; "" for metrics with one value.
var deviceLabel = map[string]string{
	cpuSeconds: "", cfsPeriods: "", throttledPeriods: "", workingSet: "", lastSeen: "", machineCores: "", machineMemory: "",
	received: "interface", transmitted: "interface", diskReads: "device", diskWrites: "device", diskReadBytes: "device", diskWritten: "device",
}

// machine is the path of the group that all others are in.
const machine = "/"

// parse reads the exposition format of Prometheus, of which it needs a few metrics. Lines that it does not understand are skipped: an answer
// may be cut.
func parse(text []byte) scrape {
	s := scrape{groups: map[string]*group{}}
	for line := range bytes.Lines(text) {
		end := bytes.IndexAny(line, "{ ")
		if end <= 0 || line[0] == '#' {
			continue
		}
		device, wanted := deviceLabel[string(line[:end])]
		if !wanted {
			continue
		}
		name := string(line[:end])
		labels, rest, ok := readLabels(strings.TrimSpace(string(line[end:])))
		if !ok {
			continue
		}
		r, ok := readValue(rest)
		if !ok {
			continue
		}
		s.take(name, device, labels, r)
	}
	return s
}

func (s *scrape) take(name, device string, labels map[string]string, r reading) {
	switch name {
	case machineCores:
		s.cores = r.value
		return
	case machineMemory:
		s.memory = r.value
		return
	case lastSeen:
		if r.at.After(s.now) {
			s.now = r.at
		}
		return
	}
	if labels["id"] == "" || r.at.IsZero() || name == cpuSeconds && labels["cpu"] != "total" && labels["cpu"] != "" {
		return
	}
	g := s.groups[labels["id"]]
	if g == nil {
		g = &group{values: map[string]reading{}, devices: map[string]map[string]reading{}}
		s.groups[labels["id"]] = g
	}
	if device == "" {
		g.values[name] = r
		return
	}
	s.diskIO = s.diskIO || device == "device"
	if g.devices[name] == nil {
		g.devices[name] = map[string]reading{}
	}
	g.devices[name][labels[device]] = r
}

// readLabels reads {a="b",c="d"}, which may be missing, and returns what follows.
func readLabels(text string) (labels map[string]string, rest string, ok bool) {
	if !strings.HasPrefix(text, "{") {
		return nil, text, true
	}
	labels = map[string]string{}
	text = text[1:]
	for {
		text = strings.TrimLeft(text, ", ")
		if after, found := strings.CutPrefix(text, "}"); found {
			return labels, after, true
		}
		name, after, found := strings.Cut(text, "=")
		if !found {
			return nil, "", false
		}
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil || quoted[0] != '"' {
			return nil, "", false
		}
		value := quoted[1 : len(quoted)-1]
		if strings.Contains(value, `\`) {
			value = unescape.Replace(value)
		}
		labels[name], text = value, after[len(quoted):]
	}
}

// unescape is that of the exposition format.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// readValue reads a value and its time in milliseconds, which may be missing.
func readValue(text string) (reading, bool) {
	value, millis, _ := strings.Cut(strings.TrimSpace(text), " ")
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || v < 0 || v != v {
		return reading{}, false
	}
	r := reading{value: v}
	if ms, err := strconv.ParseInt(strings.TrimSpace(millis), 10, 64); err == nil && ms > 0 {
		r.at = time.UnixMilli(ms)
	}
	return r, true
}

// podOf returns the UID of the pod that a group belongs to, "" for others, and whether it is the group of the whole pod:
// /kubepods/burstable/podUID/CONTAINER, or with systemd /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/… where
// the UID has underscores.
func podOf(path string) (uid string, whole bool) {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		part, slice := strings.CutSuffix(part, ".slice")
		switch at := strings.LastIndex(part, "-pod"); {
		case strings.HasPrefix(part, "pod"):
			return part[len("pod"):], i == len(parts)-1
		case slice && at >= 0:
			return strings.ReplaceAll(part[at+len("-pod"):], "_", "-"), i == len(parts)-1
		}
	}
	return "", false
}
