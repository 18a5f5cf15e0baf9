package netapp

import (
	"context"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/collect"
)

// cluster is ONTAP in cluster mode, by ZAPI.
type cluster struct {
	*zapi
	schemas map[string]schema
}

// instancesMax is how many instances one request for counters has.
const instancesMax = 250

func (c *cluster) objectName(o object) string {
	if o == nodes {
		return "system:node"
	}
	return string(o)
}

func (c *cluster) counters(ctx context.Context, o object) ([]row, schema, error) {
	name := c.objectName(o)
	s := c.schemas[name]
	if s == nil {
		var err error
		if s, err = c.schema(ctx, name); err != nil {
			return nil, nil, err
		}
		if c.schemas == nil {
			c.schemas = map[string]schema{}
		}
		c.schemas[name] = s
	}
	var uuids []string
	err := c.pages(ctx, "perf-object-instance-list-info-iter", func(e element) error {
		if len(uuids) >= rowsMax {
			return fmt.Errorf("source %q: more than %d of %s", c.name, rowsMax, name)
		}
		uuids = append(uuids, e.value("uuid"))
		return nil
	}, text("objectname", name))
	if err != nil {
		return nil, nil, err
	}
	ask := el("counters", text("counter", "instance_name"), text("counter", "vserver_name"), text("counter", "node_name"), text("counter", "parent_aggr"))
	for _, counter := range wanted(o, s) {
		ask.Children = append(ask.Children, text("counter", counter))
	}
	ask.Children = slices.DeleteFunc(ask.Children, func(e element) bool { _, has := s[e.Text]; return !has })
	var rows []row
	for batch := range slices.Chunk(uuids, instancesMax) {
		list := el("instance-uuids")
		for _, uuid := range batch {
			list.Children = append(list.Children, text("instance-uuid", uuid))
		}
		results, at, err := c.timed(ctx, el("perf-object-get-instances", text("objectname", name), list, ask))
		if err != nil {
			return nil, nil, err
		}
		for _, e := range results.child("instances").Children {
			values, texts := instance(e)
			partial := e.value("aggregation", "aggregation-data", "result") == "partial_aggregation"
			r := row{key: e.value("uuid"), values: values, at: at, partial: partial, labels: map[string]string{collect.LabelObject: string(o), collect.LabelName: e.value("name"),
				"svm": texts["vserver_name"], "aggregate": texts["parent_aggr"], collect.LabelNode: texts["node_name"]}}
			if o == nodes {
				r.labels = nodeLabels(e.value("name"))
			}
			rows = append(rows, r)
		}
	}
	return rows, s, nil
}

func nodeLabels(name string) map[string]string {
	return map[string]string{collect.LabelObject: "host", collect.LabelName: name, collect.LabelNode: name}
}

func (c *cluster) sizes(ctx context.Context) ([]size, error) {
	var list []size
	err := c.pages(ctx, "volume-get-iter", func(e element) error {
		id, space := e.child("volume-id-attributes"), e.child("volume-space-attributes")
		list = append(list, size{total: number(space.value("size-total")), used: number(space.value("size-used")), labels: map[string]string{
			collect.LabelObject: "volume", collect.LabelName: id.value("name"), "svm": id.value("owning-vserver-name"),
			"aggregate": id.value("containing-aggregate-name"), collect.LabelNode: id.value("node")}})
		return nil
	}, el("desired-attributes", el("volume-attributes", el("volume-id-attributes"), el("volume-space-attributes"))))
	return list, err
}

func (c *cluster) zeroing(ctx context.Context) ([]disk, error) {
	var list []disk
	err := c.pages(ctx, "storage-disk-get-iter", func(e element) error {
		if share, ok := zeroing(e); ok {
			node, _ := e.any("home-node-name", "owner-node-name")
			list = append(list, disk{name: e.value("disk-name"), node: node, zeroed: share})
		}
		return nil
	}, el("desired-attributes", el("storage-disk-info", el("disk-name"), el("disk-ownership-info"), el("disk-raid-info"))))
	return list, err
}
