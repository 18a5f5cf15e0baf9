package local

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// meter adds up what the processes of each virtual node's VMs used. The machine's own totals would be the same for every
// node and include other programs.
type meter struct {
	megahertz float64 // of one CPU of this machine
	ramBytes  int64   // of this machine

	mu    sync.Mutex
	last  time.Time
	order []string // node ids
	nodes map[string]*nodeUse
	vms   map[*machine]*vmUse
}

// nodeUse is what a node used since the last sample.
type nodeUse struct {
	cpuSeconds     float64
	received, sent int64 // bytes
}

// vmUse is the use of one power cycle of a VM so far.
type vmUse struct {
	process        *process
	node           string
	cpuSeconds     float64
	received, sent int64
}

func newMeter(nodes []target.Node, now time.Time) *meter {
	m := &meter{
		megahertz: cpuMegahertz(), ramBytes: machineRAM(), last: now, nodes: map[string]*nodeUse{},
		vms: map[*machine]*vmUse{},
	}
	for _, n := range nodes {
		m.order = append(m.order, n.ID)
		m.nodes[n.ID] = &nodeUse{}
	}
	return m
}

// started begins to count a power cycle. The caller holds the lock of vm; the same applies to the functions below.
func (m *meter) started(vm *machine, p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vms[vm] = &vmUse{process: p, node: vm.record.VM.NodeID}
}

// stopping counts a VM that is about to be killed.
func (m *meter) stopping(vm *machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(vm)
}

// stopped ends a power cycle; the system reports the total use of the dead process.
func (m *meter) stopped(vm *machine, p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	use := m.vms[vm]
	if use == nil || use.process != p {
		return
	}
	if state := p.command.ProcessState; state != nil {
		m.credit(use, (state.UserTime() + state.SystemTime()).Seconds())
	}
	delete(m.vms, vm)
}

// moved counts a VM up to now for its former node, and from then on for the node in its record.
func (m *meter) moved(vm *machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(vm)
	if use := m.vms[vm]; use != nil {
		use.node = vm.record.VM.NodeID
	}
}

// count adds what a running VM used since it was last counted. The caller holds the lock of the meter.
func (m *meter) count(vm *machine) {
	use := m.vms[vm]
	if use == nil {
		return
	}
	if use.process.alive() {
		m.credit(use, cpuSeconds(use.process))
	}
}

// credit adds the difference since the last reading to the node of a VM. A reading may be lower than the last one, if a
// child ended and was not waited for; it is then ignored.
func (m *meter) credit(use *vmUse, cpuSeconds float64) {
	node := m.nodes[use.node]
	if node == nil {
		return
	}
	if cpuSeconds > use.cpuSeconds {
		node.cpuSeconds += cpuSeconds - use.cpuSeconds
		use.cpuSeconds = cpuSeconds
	}
	received, sent := use.process.conn.received.Load(), use.process.conn.sent.Load()
	node.received += received - use.received
	node.sent += sent - use.sent
	use.received, use.sent = received, sent
}

// SampleNodes returns averages since the previous call.
func (m *meter) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	elapsed := now.Sub(m.last).Seconds()
	resident := map[string]int64{}
	for vm, use := range m.vms {
		m.count(vm)
		resident[use.node] += residentBytes(use.process)
	}
	if elapsed <= 0 {
		return nil, nil
	}
	m.last = now
	var samples []target.NodeSample
	for _, id := range m.order {
		use := m.nodes[id]
		add := func(metric string, value float64, unit string) {
			samples = append(samples, target.NodeSample{
				NodeID: id, Metric: metric, At: now, Value: value, Simulated: true, UnitSymbol: unit,
			})
		}
		add("CpuUsage.Avg.Percent", 100*use.cpuSeconds/elapsed/float64(runtime.NumCPU()), "%")
		add("CpuUsage.Avg.Megahertz", use.cpuSeconds/elapsed*m.megahertz, "MHz")
		if m.ramBytes > 0 {
			add("MemUsage.Avg.Percent", 100*float64(resident[id])/float64(m.ramBytes), "%")
		}
		add("NetReceived.Avg.KilobytesPerSecond", float64(use.received)/elapsed/1024, "KiB/s")
		add("NetTransmitted.Avg.KilobytesPerSecond", float64(use.sent)/elapsed/1024, "KiB/s")
		*use = nodeUse{}
	}
	return samples, nil
}

// cpuSeconds returns the CPU time of a VM: of its cgroup, or else of its process and all its children.
func cpuSeconds(p *process) float64 {
	if p.group != "" {
		if micros, ok := cpuMicros(p.group); ok {
			return float64(micros) / 1e6
		}
	}
	return treeSeconds(p.command.Process.Pid, 0)
}

const (
	ticksPerSecond = 100 // USER_HZ, the same on all architectures that Go runs on
	treeDepthMax   = 8
)

// treeSeconds adds up the CPU time of a process, its ended children, and its living ones.
func treeSeconds(pid, depth int) float64 {
	dir := "/proc/" + strconv.Itoa(pid)
	text, err := os.ReadFile(dir + "/stat")
	if err != nil || depth > treeDepthMax {
		return 0
	}
	// The name in parentheses may hold any character; fields are counted after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const utime, cstime = 11, 14
	var total float64
	for i := utime; i <= cstime && i < len(fields); i++ {
		ticks, _ := strconv.ParseFloat(fields[i], 64)
		total += ticks / ticksPerSecond
	}
	lists, _ := filepath.Glob(dir + "/task/*/children")
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				total += treeSeconds(n, depth+1)
			}
		}
	}
	return total
}

func residentBytes(p *process) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.command.Process.Pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// cpuMegahertz returns the clock rate of this machine's CPUs; 1000 if the system does not report it, so that 1 MHz is then
// a thousandth of a CPU.
func cpuMegahertz() float64 {
	const unknown = 1000
	if text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"); err == nil {
		if kilohertz, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && kilohertz > 0 {
			return kilohertz / 1000
		}
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "cpu MHz" {
			if megahertz, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && megahertz > 0 {
				return megahertz
			}
		}
	}
	return unknown
}
