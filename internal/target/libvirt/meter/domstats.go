package meter

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// stats is the output of virsh domstats for one domain: texts by name, "cpu.time" or "block.0.rd.bytes".
type stats struct {
	domain string
	values map[string]string
}

const (
	statsLineBytesMax = 1 << 16
	statsValuesMax    = 1 << 16 // of one domain
)

// parseStats reads the output of virsh domstats:
//
//	Domain: 'name'
//	  cpu.time=1234
//	  net.0.rx.bytes=90
//
// Names of domains are free text. A line of another form is an error.
func parseStats(text []byte) ([]stats, error) {
	var all []stats
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, statsLineBytesMax)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "Domain: '"); ok {
			all = append(all, stats{domain: strings.TrimSuffix(name, "'"), values: map[string]string{}})
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimLeft(line, " \t"), "=")
		if !ok || len(all) == 0 {
			return nil, fmt.Errorf("read domain statistics: unexpected line %q", line[:min(len(line), 80)])
		}
		values := all[len(all)-1].values
		if len(values) >= statsValuesMax {
			return nil, fmt.Errorf("read domain statistics: more than %d of one domain", statsValuesMax)
		}
		values[key] = value
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read domain statistics: %w", err)
	}
	return all, nil
}

// number returns a value; 0 where there is none, because libvirt leaves out what a domain has not used.
func (s stats) number(key string) float64 {
	n, err := strconv.ParseUint(s.values[key], 10, 64)
	if err != nil {
		return 0
	}
	return float64(n)
}

const devicesMax = 1024 // of one kind in one domain

// sum adds a value up over the devices of a kind: sum("net", "rx.bytes").
func (s stats) sum(kind, value string) float64 {
	total, _ := s.sumHad(kind+".count", kind, value)
	return total
}

// has reports whether there is a value at all.
func (s stats) has(key string) bool { return s.values[key] != "" }

// sumHad is sum over as many devices as the value count says, and whether any of them has the value.
func (s stats) sumHad(count, kind, value string) (total float64, ok bool) {
	for i := range int(min(s.number(count), devicesMax)) {
		key := fmt.Sprintf("%s.%d.%s", kind, i, value)
		total += s.number(key)
		ok = ok || s.has(key)
	}
	return total, ok
}
