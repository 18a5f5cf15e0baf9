package netapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect"
)

// rest is ONTAP 9.11.1 and later, by REST. Its counter tables have no time: rows have that of this program.
type rest struct {
	client  *collect.Client
	name    string
	schemas map[object]schema
}

func tableOf(o object) string {
	if o == nodes {
		return "system:node"
	}
	return "volume"
}

// list reads all pages of a list.
func list[T any](ctx context.Context, r *rest, path string, query url.Values) ([]T, error) {
	var all []T
	query.Set("max_records", strconv.Itoa(recordsMax))
	call := collect.Call{Path: path, Query: query}
	for range pagesMax {
		answer, err := r.client.Do(ctx, call)
		if err != nil {
			return nil, err
		}
		var page struct {
			Records []T
			Links   struct {
				Next struct{ Href string }
			} `json:"_links"`
		}
		if err := answer.JSON(&page); err != nil {
			return nil, fmt.Errorf("source %q: %s: the answer is not that of ONTAP", r.name, path)
		}
		all = append(all, page.Records...)
		// The link is a path with a query on the same system; a link to another place is not followed.
		next, err := url.Parse(page.Links.Next.Href)
		if page.Links.Next.Href == "" || len(all) >= rowsMax {
			return all, nil
		}
		if err != nil || next.IsAbs() || next.Host != "" || !strings.HasPrefix(next.Path, "/api/") {
			return nil, fmt.Errorf("source %q: %s: invalid link to the next page", r.name, path)
		}
		call = collect.Call{Path: next.Path, Query: next.Query()}
	}
	return nil, fmt.Errorf("source %q: %s: more than %d pages", r.name, path, pagesMax)
}

func (r *rest) schema(ctx context.Context, o object) (schema, error) {
	if s := r.schemas[o]; s != nil {
		return s, nil
	}
	answer, err := r.client.Do(ctx, collect.Call{Path: "/api/cluster/counter/tables/" + tableOf(o)})
	if err != nil {
		return nil, err
	}
	var table struct {
		Schemas []struct {
			Name, Unit  string
			Denominator struct{ Name string }
		} `json:"counter_schemas"`
	}
	if err := answer.JSON(&table); err != nil {
		return nil, fmt.Errorf("source %q: the description of counters of %s is not that of ONTAP", r.name, o)
	}
	s := schema{}
	for _, c := range table.Schemas {
		s[c.Name] = counterInfo{base: c.Denominator.Name, factor: factorOf(c.Unit)}
	}
	if r.schemas == nil {
		r.schemas = map[object]schema{}
	}
	r.schemas[o] = s
	return s, nil
}

// record is one row of a counter table.
type record struct {
	ID         string
	Properties []struct {
		Name  string
		Value any
	}
	Counters []struct {
		Name  string
		Value *json.Number // nil for arrays
	}
	Aggregation struct{ Complete *bool }
}

func (r *rest) counters(ctx context.Context, o object) ([]row, schema, error) {
	s, err := r.schema(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	records, err := list[record](ctx, r, "/api/cluster/counter/tables/"+tableOf(o)+"/rows", url.Values{
		"fields": {"*"}, "counters.name": {strings.Join(wanted(o, s), "|")},
	})
	if err != nil {
		return nil, nil, err
	}
	at := began.Add(time.Since(began) / 2)
	var rows []row
	for _, one := range records {
		properties := map[string]string{}
		for _, p := range one.Properties {
			properties[p.Name] = fmt.Sprint(p.Value)
		}
		node := properties["node.name"]
		labels := map[string]string{collect.LabelObject: string(o), collect.LabelName: properties["name"], "svm": properties["svm.name"],
			"aggregate": properties["parent_aggregate"], collect.LabelNode: node}
		if o == nodes {
			if node == "" {
				node = one.ID
			}
			labels = nodeLabels(node)
		}
		values := map[string]uint64{}
		for _, c := range one.Counters {
			if c.Value == nil {
				continue
			}
			if n, err := strconv.ParseUint(c.Value.String(), 10, 64); err == nil {
				values[c.Name] = n
			}
		}
		complete := one.Aggregation.Complete
		rows = append(rows, row{key: one.ID, labels: labels, values: values, at: at, partial: complete != nil && !*complete})
	}
	return rows, s, nil
}

func (r *rest) sizes(ctx context.Context) ([]size, error) {
	type volume struct {
		Name       string
		SVM        struct{ Name string }
		Aggregates []struct{ Name string }
		Space      struct{ Size, Used float64 }
	}
	volumes, err := list[volume](ctx, r, "/api/storage/volumes", url.Values{"fields": {"name,svm.name,aggregates.name,space.size,space.used"}})
	var out []size
	for _, v := range volumes {
		labels := map[string]string{collect.LabelObject: "volume", collect.LabelName: v.Name, "svm": v.SVM.Name}
		if len(v.Aggregates) == 1 {
			labels["aggregate"] = v.Aggregates[0].Name
		}
		out = append(out, size{labels: labels, total: v.Space.Size, used: v.Space.Used})
	}
	return out, err
}

// zeroing reads the command line of ONTAP by REST: the public interface has the state of disks and no progress. Where the user may not read it, the public
// interface says whether there is anything to miss.
func (r *rest) zeroing(ctx context.Context) ([]disk, error) {
	type record struct {
		Disk    string
		Home    string   `json:"home"`
		Percent *float64 `json:"zeroing_percent"`
	}
	records, err := list[record](ctx, r, "/api/private/cli/storage/disk", url.Values{"fields": {"disk,home,zeroing_percent"}})
	var refused *collect.StatusError
	if errors.As(err, &refused) {
		return nil, r.zeroingNow(ctx, refused)
	}
	var out []disk
	for _, d := range records {
		if d.Percent != nil && *d.Percent >= 0 && *d.Percent <= 100 {
			out = append(out, disk{name: d.Disk, node: d.Home, zeroed: *d.Percent / 100})
		}
	}
	return out, err
}

// zeroingNow is nil if no disk is being zeroed.
func (r *rest) zeroingNow(ctx context.Context, refused error) error {
	disks, err := list[struct{ State string }](ctx, r, "/api/storage/disks", url.Values{"state": {"zeroing"}, "fields": {"state"}})
	if err != nil {
		return refused
	}
	n := 0
	for _, d := range disks {
		if d.State == "zeroing" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d are being zeroed, which competes with the load; their progress needs the right to read \"storage disk\" by the command line: %w", n, refused)
}
