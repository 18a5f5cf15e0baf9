package nutanix

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect"
)

// element is Prism Element, by v2 and, for VMs, v1: its lists contain the latest statistics as texts.
type element struct{ *prism }

// listed is an entity of a list of v1 and v2.
type listed struct {
	Name       string
	VMName     string            `json:"vmName"`
	HostName   string            `json:"hostName"`
	PowerState string            `json:"powerState"`
	Stats      map[string]string `json:"stats"`
	UsageStats map[string]string `json:"usage_stats"`
}

// Collect implements collect.Collector.
func (p *element) Collect(ctx context.Context) (collect.Reading, error) {
	var reading collect.Reading
	for _, of := range []struct{ kind, path string }{
		{"container", "/PrismGateway/services/rest/v2.0/storage_containers"}, {"host", "/PrismGateway/services/rest/v2.0/hosts"},
		{"vm", "/PrismGateway/services/rest/v1/vms"},
	} {
		var answer struct{ Entities []listed }
		query := url.Values{}
		if of.kind == "vm" {
			query = url.Values{"projection": {"stats,basicInfo"}}
		}
		clock, err := p.get(ctx, collect.Call{Path: of.path, Query: query}, &answer)
		if err != nil {
			return collect.Reading{}, err
		}
		reading.Clock = clock
		for _, one := range answer.Entities {
			e := entity{kind: of.kind, name: one.Name, node: one.HostName}
			if of.kind == "vm" {
				e.name, e.vm = one.VMName, one.VMName
			}
			if of.kind == "vm" && strings.EqualFold(one.PowerState, "off") {
				continue
			}
			if of.kind == "container" && !p.o.Reads(e.name) || of.kind == "vm" && !p.o.ReadsVM(e.name) {
				continue
			}
			reading.Samples = append(reading.Samples, one.samples(e)...)
		}
	}
	return reading, nil
}

// samples are the latest statistics. They have no time.
func (l *listed) samples(e entity) []collect.Sample {
	values := map[string]float64{}
	for _, of := range []map[string]string{l.Stats, l.UsageStats} {
		for name, text := range of {
			if number, err := strconv.ParseFloat(text, 64); err == nil {
				values[plain(name)] = number
			}
		}
	}
	var out []collect.Sample
	for name, value := range values {
		if s, ok := sampleOf(e, name, value, values, time.Time{}); ok {
			out = append(out, s)
		}
	}
	return out
}
