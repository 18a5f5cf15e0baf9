package netapp

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/collect"
)

// sevenMode is Data ONTAP 7-mode, by ZAPI. Its lists are iterators on the system that have to be ended.
type sevenMode struct {
	*zapi
	system  string
	schemas map[string]schema
}

func (m *sevenMode) counters(ctx context.Context, o object) ([]row, schema, error) {
	name := string(o)
	if o == nodes {
		name = "system"
	}
	if m.system == "" {
		results, err := m.call(ctx, el("system-get-info"))
		if err != nil {
			return nil, nil, err
		}
		m.system, m.schemas = results.value("system-info", "system-name"), map[string]schema{}
	}
	s := m.schemas[name]
	if s == nil {
		var err error
		if s, err = m.schema(ctx, name); err != nil {
			return nil, nil, err
		}
		m.schemas[name] = s
	}
	ask := el("counters")
	for _, counter := range wanted(o, s) {
		ask.Children = append(ask.Children, text("counter", counter))
	}
	var rows []row
	err := m.iterate(ctx, el("perf-object-get-instances-iter-start", text("objectname", name), ask), "instances", func(e element, at time.Time) {
		values, _ := instance(e)
		r := row{key: e.value("name"), values: values, at: at, labels: map[string]string{collect.LabelObject: string(o), collect.LabelName: e.value("name"),
			collect.LabelNode: m.system}}
		if o == nodes {
			r.labels = nodeLabels(m.system)
		}
		rows = append(rows, r)
	})
	return rows, s, err
}

// iterate sends NAME-iter-start, -next and -end. each also takes the time of the start, at which the system copied the list.
func (m *sevenMode) iterate(ctx context.Context, start element, list string, each func(element, time.Time)) error {
	api := start.XMLName.Local[:len(start.XMLName.Local)-len("start")]
	results, at, err := m.timed(ctx, start)
	if err != nil {
		return err
	}
	tag := results.value("tag")
	defer func() { _, _ = m.call(context.WithoutCancel(ctx), el(api+"end", text("tag", tag))) }() // else the system keeps it for minutes
	left, err := strconv.Atoi(results.value("records"))
	if err != nil || left < 0 || left > rowsMax {
		return fmt.Errorf("source %q: %s: %q records", m.name, start.XMLName.Local, m.client.Mask(results.value("records")))
	}
	for left > 0 {
		results, err := m.call(ctx, el(api+"next", text("tag", tag), text("maximum", strconv.Itoa(recordsMax))))
		if err != nil {
			return err
		}
		found := results.child(list).Children
		if len(found) == 0 {
			return nil
		}
		for _, e := range found {
			each(e, at)
		}
		left -= len(found)
	}
	return nil
}

func (m *sevenMode) sizes(ctx context.Context) ([]size, error) {
	var list []size
	err := m.iterate(ctx, el("volume-list-info-iter-start"), "volumes", func(e element, _ time.Time) {
		list = append(list, size{total: number(e.value("size-total")), used: number(e.value("size-used")), labels: map[string]string{
			collect.LabelObject: "volume", collect.LabelName: e.value("name"), "aggregate": e.value("containing-aggregate"), collect.LabelNode: m.system}})
	})
	return list, err
}

func (m *sevenMode) zeroing(ctx context.Context) ([]disk, error) {
	results, err := m.call(ctx, el("disk-list-info"))
	if err != nil {
		return nil, err
	}
	var list []disk
	for _, e := range results.child("disk-details").Children {
		if share, ok := zeroing(e); ok {
			list = append(list, disk{name: e.value("name"), node: m.system, zeroed: share})
		}
	}
	return list, nil
}
