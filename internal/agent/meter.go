package agent

import (
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// meter counts what the agent's own workloads completed on each device, and the bytes of its connections: the numbers
// behind the metrics of a VM that is a process, where the machine's totals would count the neighbors too.
type meter struct {
	options  Options
	boot     string
	started  time.Time
	received atomic.Int64 // bytes
	sent     atomic.Int64 // bytes

	mu      sync.Mutex
	devices map[string]*deviceTotals
}

// deviceTotals are the counters of one device since the agent started.
type deviceTotals struct {
	traffic interval.DeviceTraffic
	// busyNanos bounds how long the device had something to do: in each interval at most the interval's length.
	busyNanos uint64
	inFlight  uint64
}

func newMeter(o Options, boot string, started time.Time) *meter {
	m := &meter{options: o, boot: boot, started: started, devices: map[string]*deviceTotals{}}
	for _, d := range o.Devices {
		m.devices[d.Name] = &deviceTotals{} // a counter that begins at 0 has a rate from its first second on
	}
	return m
}

// add counts one interval of a workload on devices.
func (m *meter) add(iv *interval.Interval, devices []load.Device) {
	split := iv.Devices
	if split == nil {
		split = divide(iv, devices)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, traffic := range split {
		totals := m.devices[name]
		if totals == nil {
			if len(m.devices) >= wire.DevicesMax {
				continue
			}
			totals = &deviceTotals{}
			m.devices[name] = totals
		}
		var service uint64
		for d := range traffic {
			totals.traffic[d].Operations += traffic[d].Operations
			totals.traffic[d].Bytes += traffic[d].Bytes
			totals.traffic[d].ServiceNanos += traffic[d].ServiceNanos
			service += traffic[d].ServiceNanos
		}
		totals.busyNanos += min(service, uint64(max(0, iv.LengthNanos)))
		totals.inFlight = iv.InFlight / uint64(len(split))
		if iv.Final {
			totals.inFlight = 0
		}
	}
}

// divide spreads an interval evenly over devices, for generators that cannot tell them apart. Sums stay exact.
func divide(iv *interval.Interval, devices []load.Device) map[string]interval.DeviceTraffic {
	if len(devices) == 0 {
		return nil
	}
	split := map[string]interval.DeviceTraffic{}
	share := func(total uint64, i int) uint64 {
		n := uint64(len(devices))
		if i == 0 {
			return total/n + total%n
		}
		return total / n
	}
	for i, device := range devices {
		var traffic interval.DeviceTraffic
		for d := range traffic {
			whole := &iv.Directions[d]
			var service uint64
			if whole.Service != nil && !whole.Late() {
				service = uint64(max(0, whole.Service.Sum()))
			}
			traffic[d] = interval.DeviceCount{
				Operations: share(whole.Operations, i), Bytes: share(whole.Bytes, i), ServiceNanos: share(service, i),
			}
		}
		split[device.Name] = traffic
	}
	return split
}

// snapshot returns the devices in the order of their names.
func (m *meter) snapshot() (names []string, totals []deviceTotals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.devices)) {
		names = append(names, name)
		totals = append(totals, *m.devices[name])
	}
	return names, totals
}

// count returns conn with its bytes counted.
func (m *meter) count(conn net.Conn) net.Conn { return &countingConn{conn, m} }

type countingConn struct {
	net.Conn
	meter *meter
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.received.Add(int64(n))
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.meter.sent.Add(int64(n))
	return n, err
}

type countingListener struct {
	net.Listener
	meter *meter
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.meter.count(conn), nil
}
