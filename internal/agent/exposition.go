package agent

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// metricsType is Prometheus' text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// expose answers with the agent's counters in Prometheus' text format with the names of node_exporter, so that a query written for a
// real VM works here. Every sample carries simulated="true": it is derived from the agent's own completed operations and its own
// process, never from the machine. It is served on a port of its own and on the connection of the controller: an agent behind a
// firewall has no other port.
func (m *meter) expose(w http.ResponseWriter, _ *http.Request) {
	m.options.at("agent.metrics")
	w.Header().Set("Content-Type", metricsType)
	_, _ = io.WriteString(w, m.exposition(time.Now()))
}

// page collects the text of one scrape.
type page struct{ b strings.Builder }

func (p *page) family(name, kind, help string) {
	fmt.Fprintf(&p.b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one line; labels are name and value in turn.
func (p *page) sample(name string, value float64, labels ...string) {
	p.b.WriteString(name + "{")
	for i := 0; i+1 < len(labels); i += 2 {
		p.b.WriteString(labels[i] + `="` + escapeLabel(labels[i+1]) + `",`)
	}
	p.b.WriteString(`simulated="true"} ` + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

func (p *page) single(name, kind, help string, value float64) {
	p.family(name, kind, help)
	p.sample(name, value)
}

func escapeLabel(v string) string {
	v = strings.ToValidUTF8(v, "\ufffd")
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(v)
}

func (m *meter) exposition(now time.Time) string {
	p := &page{}
	m.exposeDisks(p)
	m.exposeCPU(p, now)
	m.exposeMemory(p)
	const network = "Bytes on the connections of the agent itself."
	p.family("node_network_receive_bytes_total", "counter", network)
	p.sample("node_network_receive_bytes_total", float64(m.received.Load()), "device", "eth0")
	p.family("node_network_transmit_bytes_total", "counter", network)
	p.sample("node_network_transmit_bytes_total", float64(m.sent.Load()), "device", "eth0")
	p.single("node_boot_time_seconds", "gauge", "When the agent started, in Unix time.", seconds(m.started.UnixNano()))
	p.single("node_time_seconds", "gauge", "Unix time.", seconds(now.UnixNano()))
	m.exposeIdentity(p)
	return p.b.String()
}

func seconds(nanos int64) float64 { return float64(nanos) / 1e9 }

// diskFamily is one node_disk_* counter and how it follows from a device's totals.
type diskFamily struct {
	name, help string
	value      func(t *deviceTotals) float64
}

func diskFamilies() []diskFamily {
	direction := func(d interval.Direction, value func(interval.DeviceCount) float64) func(*deviceTotals) float64 {
		return func(t *deviceTotals) float64 { return value(t.traffic[d]) }
	}
	operations := func(c interval.DeviceCount) float64 { return float64(c.Operations) }
	bytes := func(c interval.DeviceCount) float64 { return float64(c.Bytes) }
	sectors := func(c interval.DeviceCount) float64 { return float64(c.Bytes / 512) }
	service := func(c interval.DeviceCount) float64 { return float64(c.ServiceNanos) / 1e9 }
	const completed, moved, took = "Operations completed.", "Bytes moved.", "Sum of the service times of all operations."
	return []diskFamily{
		{"node_disk_reads_completed_total", completed, direction(interval.Read, operations)},
		{"node_disk_read_bytes_total", moved, direction(interval.Read, bytes)},
		{"node_disk_read_time_seconds_total", took, direction(interval.Read, service)},
		{"node_disk_writes_completed_total", completed, direction(interval.Write, operations)},
		{"node_disk_written_bytes_total", moved, direction(interval.Write, bytes)},
		{"node_disk_write_time_seconds_total", took, direction(interval.Write, service)},
		{"node_disk_discards_completed_total", completed, direction(interval.Trim, operations)},
		{"node_disk_discarded_sectors_total", "Sectors of 512 bytes discarded.", direction(interval.Trim, sectors)},
		{"node_disk_discard_time_seconds_total", took, direction(interval.Trim, service)},
		{
			"node_disk_io_time_seconds_total", "Upper bound of the time with operations in flight, from service times.",
			func(t *deviceTotals) float64 { return float64(t.busyNanos) / 1e9 },
		},
		{
			"node_disk_io_time_weighted_seconds_total", took,
			func(t *deviceTotals) float64 {
				return float64(t.traffic[0].ServiceNanos+t.traffic[1].ServiceNanos+t.traffic[2].ServiceNanos) / 1e9
			},
		},
	}
}

func (m *meter) exposeDisks(p *page) {
	names, totals := m.snapshot()
	for _, f := range diskFamilies() {
		p.family(f.name, "counter", f.help)
		for i, name := range names {
			p.sample(f.name, f.value(&totals[i]), "device", strings.TrimPrefix(name, "/dev/"))
		}
	}
	p.family("node_disk_io_now", "gauge", "Operations in flight at the end of the last interval.")
	for i, name := range names {
		p.sample("node_disk_io_now", float64(totals[i].inFlight), "device", strings.TrimPrefix(name, "/dev/"))
	}
}

// exposeCPU spreads the process' CPU time evenly over the VM's virtual CPUs: which one it ran on has no meaning here.
func (m *meter) exposeCPU(p *page, now time.Time) {
	user, system, switches := processTimes()
	cpus := max(1, m.options.VCPUs)
	uptime := now.Sub(m.started).Seconds()
	p.family("node_cpu_seconds_total", "counter", "CPU time of the agent and its ended children, spread over its CPUs.")
	for cpu := range cpus {
		n := strconv.Itoa(cpu)
		u, k := user/float64(cpus), system/float64(cpus)
		p.sample("node_cpu_seconds_total", max(0, uptime-u-k), "cpu", n, "mode", "idle")
		p.sample("node_cpu_seconds_total", k, "cpu", n, "mode", "system")
		p.sample("node_cpu_seconds_total", u, "cpu", n, "mode", "user")
	}
	p.single("node_context_switches_total", "counter", "Context switches of the agent.", switches)
}

func (m *meter) exposeMemory(p *page) {
	resident := residentBytes()
	total := m.options.RAMBytes
	if total <= 0 {
		total = resident
	}
	free := float64(max(0, total-resident))
	p.single("node_memory_MemTotal_bytes", "gauge", "Memory that the VM was given.", float64(total))
	p.single("node_memory_MemFree_bytes", "gauge", "Memory of the VM less what the agent's process holds.", free)
	p.single("node_memory_MemAvailable_bytes", "gauge", "The same as MemFree: an agent has no page cache of its own.", free)
}

func (m *meter) exposeIdentity(p *page) {
	k := machineKernel()
	p.family("node_uname_info", "gauge", "The machine's kernel under the VM's own name.")
	p.sample("node_uname_info", 1, "sysname", k.name, "release", k.release, "version", k.version, "machine", k.machine,
		"nodename", m.options.VM, "domainname", "(none)")
	p.family("bragg_agent_info", "gauge", "The agent.")
	p.sample("bragg_agent_info", 1, "version", m.options.Version, "vm", m.options.VM, "boot", m.boot)
}

// kernel is what node_uname_info tells.
type kernel struct{ name, release, version, machine string }

// residentBytes returns how much memory this process holds, 0 where the system does not tell.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
