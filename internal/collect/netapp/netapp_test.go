package netapp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/netapp"
	"github.com/braggdev/bragg/internal/target"
)

const password = "hunter2-of-filer"

// filer is a NetApp system of one mode, with two volumes and one node. Its replies have the structure of published ones.
type filer struct {
	t    *testing.T
	mode string // "7-mode", "cluster", "rest", "old rest": ONTAP without counter tables
	// sameTag: the last page of a list has the tag of the request, as some versions send it.
	sameTag bool
	noDisks bool

	mu       sync.Mutex
	counters map[string]map[string]uint64 // by volume and counter, in the names of ZAPI
	busy     uint64                       // of elapsed, both of the node
	elapsed  uint64
	zeroed   map[string]string // disk → percent, or "done"
	calls    []string
	open     map[string][]string // iterators of 7-mode
}

func (f *filer) set(change func(*filer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

var schemaOfZAPI = map[string]string{
	"read_ops": "", "write_ops": "", "other_ops": "", "read_data": "", "write_data": "",
	"read_latency": "read_ops", "write_latency": "write_ops", "other_latency": "other_ops", "instance_name": "", "vserver_name": "",
}

var restNames = map[string]string{
	"read_ops": "total_read_ops", "write_ops": "total_write_ops", "other_ops": "total_other_ops", "read_data": "bytes_read", "write_data": "bytes_written",
	"read_latency": "read_latency", "write_latency": "write_latency", "other_latency": "other_latency",
}

func (f *filer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if user, pass, _ := r.BasicAuth(); user != "viewer" || pass != password {
		http.Error(w, "401 for "+pass, http.StatusUnauthorized)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		f.rest(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/servlets/netapp.servlets.admin.XMLrequest_filer" || r.Header.Get("Content-Type") != "text/xml" {
		http.NotFound(w, r)
		return
	}
	api := regexp.MustCompile(`nmsdk_language="Go"><([a-z-]+)>`).FindStringSubmatch(string(body))[1]
	f.calls = append(f.calls, api)
	answer, failed := f.zapi(api, string(body))
	if failed != "" {
		fmt.Fprintf(w, "<?xml version='1.0' encoding='UTF-8' ?>\n<!DOCTYPE netapp SYSTEM 'file:/etc/netapp_filer.dtd'>\n<netapp version='1.17' xmlns='http://www.netapp.com/filer/admin'><results reason=\"%s\" status=\"failed\" errno=\"13005\"></results></netapp>", failed)
		return
	}
	fmt.Fprintf(w, "<?xml version='1.0' encoding='UTF-8' ?>\n<!DOCTYPE netapp SYSTEM 'file:/etc/netapp_filer.dtd'>\n<netapp version='1.17' xmlns='http://www.netapp.com/filer/admin'><results status=\"passed\">%s</results></netapp>", answer)
}

func argument(body, name string) string {
	m := regexp.MustCompile(`<` + name + `>([^<]*)</` + name + `>`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return m[1]
}

// zapi answers one request.
func (f *filer) zapi(api, body string) (answer, failed string) {
	switch api {
	case "system-get-version":
		if f.mode == "7-mode" {
			return "<build-timestamp>1400000000</build-timestamp><is-clustered>false</is-clustered><version>NetApp Release 8.2P4 7-Mode: Fri Sep 20</version>", ""
		}
		return "<is-clustered>true</is-clustered><version>NetApp Release 9.8P1: Tue</version>", ""
	case "perf-object-counter-list-info":
		return f.schema(argument(body, "objectname")), ""
	}
	if f.mode == "7-mode" {
		return f.sevenMode(api, body)
	}
	return f.cluster(api, body)
}

func (f *filer) schema(object string) string {
	if strings.HasPrefix(object, "system") {
		return "<counters><counter-info><name>avg_processor_busy</name><base-counter>cpu_elapsed_time1</base-counter><unit>percent</unit></counter-info>" +
			"<counter-info><name>cpu_elapsed_time1</name><unit>none</unit></counter-info></counters>"
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(schemaOfZAPI)) {
		unit := "per_sec"
		if strings.HasSuffix(name, "latency") {
			unit = "microsec"
		}
		fmt.Fprintf(&b, "<counter-info><name>%s</name><base-counter>%s</base-counter><unit>%s</unit></counter-info>", name, schemaOfZAPI[name], unit)
	}
	return "<counters>" + b.String() + "</counters>"
}

// instance is the counters of a volume or the node that a request names.
func (f *filer) instance(object, name, body string) string {
	values := map[string]string{}
	if strings.HasPrefix(object, "system") {
		values = map[string]string{"avg_processor_busy": fmt.Sprint(f.busy), "cpu_elapsed_time1": fmt.Sprint(f.elapsed)}
	} else {
		for counter, value := range f.counters[name] {
			values[counter] = fmt.Sprint(value)
		}
		values["instance_name"], values["vserver_name"] = name, "svm1"
	}
	var b strings.Builder
	for _, counter := range slices.Sorted(maps.Keys(values)) {
		if strings.Contains(body, "<counter>"+counter+"</counter>") {
			fmt.Fprintf(&b, "<counter-data><name>%s</name><value>%s</value></counter-data>", counter, values[counter])
		}
	}
	return fmt.Sprintf("<instance-data><counters>%s</counters><name>%s</name><uuid>uuid-of-%s</uuid></instance-data>", b.String(), name, name)
}

func (f *filer) instances(object string) []string {
	if strings.HasPrefix(object, "system") {
		return []string{"node-a"}
	}
	return slices.Sorted(maps.Keys(f.counters))
}

func (f *filer) sevenMode(api, body string) (answer, failed string) {
	if start, ok := strings.CutSuffix(api, "-iter-start"); ok {
		var records []string
		if start == "volume-list-info" {
			for name := range maps.Keys(f.counters) {
				records = append(records, fmt.Sprintf("<volume-info><name>%s</name><size-total>1000</size-total><size-used>400</size-used><containing-aggregate>aggr0</containing-aggregate></volume-info>", name))
			}
		} else {
			for _, name := range f.instances(argument(body, "objectname")) {
				records = append(records, f.instance(argument(body, "objectname"), name, body))
			}
		}
		tag := fmt.Sprintf("%s_%d", start, len(f.calls))
		f.open[tag] = records
		return fmt.Sprintf("<records>%d</records><tag>%s</tag><timestamp>%d</timestamp>", len(records), tag, time.Now().Unix()), ""
	}
	tag := argument(body, "tag")
	switch {
	case strings.HasSuffix(api, "-iter-next"):
		// One record at a time, whatever the maximum is.
		records := f.open[tag]
		f.open[tag] = records[1:]
		list := map[bool]string{true: "volumes", false: "instances"}[strings.HasPrefix(api, "volume")]
		return fmt.Sprintf("<records>1</records><%s>%s</%s>", list, records[0], list), ""
	case strings.HasSuffix(api, "-iter-end"):
		delete(f.open, tag)
		return "", ""
	case api == "system-get-info":
		return "<system-info><system-name>filer7</system-name><system-id>1</system-id></system-info>", ""
	case api == "disk-list-info":
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(f.zeroed)) {
			state := "<zeroing-percent>" + f.zeroed[name] + "</zeroing-percent><is-zeroed>false</is-zeroed>"
			if f.zeroed[name] == "done" {
				state = "<is-zeroed>true</is-zeroed>"
			}
			fmt.Fprintf(&b, "<disk-detail-info><name>%s</name><raid-state>spare</raid-state>%s</disk-detail-info>", name, state)
		}
		return "<disk-details>" + b.String() + "</disk-details>", ""
	}
	return "", "Unable to find API: " + api
}

// cluster pages lists with one record each.
func (f *filer) cluster(api, body string) (answer, failed string) {
	var records []string
	switch api {
	case "perf-object-get-instances":
		var b strings.Builder
		for _, name := range f.instances(argument(body, "objectname")) {
			if strings.Contains(body, "<instance-uuid>uuid-of-"+name+"</instance-uuid>") {
				b.WriteString(f.instance(argument(body, "objectname"), name, body))
			}
		}
		return fmt.Sprintf("<timestamp>%d</timestamp><instances>%s</instances>", time.Now().Unix(), b.String()), ""
	case "perf-object-instance-list-info-iter":
		for _, name := range f.instances(argument(body, "objectname")) {
			records = append(records, fmt.Sprintf("<instance-info><name>%s</name><uuid>uuid-of-%s</uuid></instance-info>", name, name))
		}
	case "volume-get-iter":
		for _, name := range f.instances("volume") {
			records = append(records, fmt.Sprintf("<volume-attributes><volume-id-attributes><name>%s</name><owning-vserver-name>svm1</owning-vserver-name><node>node-a</node></volume-id-attributes>"+
				"<volume-space-attributes><size-total>1000</size-total><size-used>400</size-used></volume-space-attributes></volume-attributes>", name))
		}
	case "storage-disk-get-iter":
		if f.noDisks {
			return "", "Insufficient privileges: user 'viewer'"
		}
		for name, percent := range f.zeroed {
			state := "<is-zeroing>true</is-zeroing><zeroing-percent>" + percent + "</zeroing-percent><is-zeroed>false</is-zeroed>"
			if percent == "done" {
				state = "<is-zeroed>true</is-zeroed><is-zeroing>false</is-zeroing>"
			}
			records = append(records, "<storage-disk-info><disk-name>"+name+"</disk-name><disk-ownership-info><home-node-name>node-a</home-node-name></disk-ownership-info>"+
				"<disk-raid-info><disk-spare-info>"+state+"</disk-spare-info></disk-raid-info></storage-disk-info>")
		}
	default:
		return "", "Unable to find API: " + api
	}
	at, _ := strconv.Atoi(argument(body, "tag"))
	if at >= len(records) {
		return "<num-records>0</num-records>", ""
	}
	next := ""
	switch {
	case at+1 < len(records):
		next = fmt.Sprintf("<next-tag>%d</next-tag>", at+1)
	case f.sameTag && at > 0:
		next = fmt.Sprintf("<next-tag>%d</next-tag>", at)
	}
	return fmt.Sprintf("<attributes-list>%s</attributes-list>%s<num-records>1</num-records>", records[at], next), ""
}

func (f *filer) rest(w http.ResponseWriter, r *http.Request) {
	reply := func(v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			f.t.Error(err)
		}
	}
	type object = map[string]any
	f.calls = append(f.calls, r.URL.Path)
	switch {
	case f.mode == "7-mode" || f.mode == "cluster":
		http.NotFound(w, r)
	case r.URL.Path == "/api/cluster":
		version := object{"generation": 9, "major": 14, "minor": 1}
		if f.mode == "old rest" {
			version["major"] = 8
		}
		reply(object{"name": "cl1", "version": version})
	case r.URL.Path == "/api/cluster/counter/tables/volume":
		var schemas []object
		for name, rest := range restNames {
			unit := "per_sec"
			if strings.HasSuffix(name, "latency") {
				unit = "microsec"
			}
			schemas = append(schemas, object{"name": rest, "unit": unit, "denominator": object{"name": restNames[schemaOfZAPI[name]]}})
		}
		reply(object{"name": "volume", "counter_schemas": schemas})
	case r.URL.Path == "/api/cluster/counter/tables/volume/rows":
		names := f.instances("volume")
		at, _ := strconv.Atoi(r.URL.Query().Get("start.index"))
		var counters []object
		for name, value := range f.counters[names[at]] {
			if slices.Contains(strings.Split(r.URL.Query().Get("counters.name"), "|"), restNames[name]) {
				counters = append(counters, object{"name": restNames[name], "value": value})
			}
		}
		counters = append(counters, object{"name": "nfs.read_latency_histogram", "values": []int{0, 1}, "labels": []string{"<2us", "<6us"}})
		page := object{"num_records": 1, "records": []object{{"id": "node-a:svm1:" + names[at], "counters": counters, "properties": []object{
			{"name": "node.name", "value": "node-a"}, {"name": "svm.name", "value": "svm1"}, {"name": "name", "value": names[at]},
		}}}}
		if at+1 < len(names) {
			query := r.URL.Query()
			query.Set("start.index", fmt.Sprint(at+1))
			page["_links"] = object{"next": object{"href": r.URL.Path + "?" + query.Encode()}}
		}
		reply(page)
	case r.URL.Path == "/api/cluster/counter/tables/system:node":
		reply(object{"counter_schemas": []object{{"name": "average_processor_busy_percent", "unit": "percent", "denominator": object{"name": "cpu_elapsed_time"}},
			{"name": "cpu_elapsed_time", "unit": "microsec"}}})
	case r.URL.Path == "/api/cluster/counter/tables/system:node/rows":
		reply(object{"records": []object{{"id": "node-a:uuid", "properties": []object{{"name": "node.name", "value": "node-a"}},
			"counters": []object{{"name": "average_processor_busy_percent", "value": f.busy}, {"name": "cpu_elapsed_time", "value": f.elapsed}}}}})
	case r.URL.Path == "/api/storage/volumes":
		var records []object
		for _, name := range f.instances("volume") {
			records = append(records, object{"name": name, "svm": object{"name": "svm1"}, "space": object{"size": 1000, "used": 400}, "aggregates": []object{{"name": "aggr0"}}})
		}
		reply(object{"records": records})
	case r.URL.Path == "/api/private/cli/storage/disk":
		var records []object
		for name, percent := range f.zeroed {
			n, err := strconv.ParseFloat(percent, 64)
			if err != nil {
				n = 100
			}
			records = append(records, object{"disk": name, "home": "node-a", "zeroing_percent": n})
		}
		reply(object{"records": append(records, object{"disk": "1.0.99"})})
	default:
		http.NotFound(w, r)
	}
}

// serve starts a filer and returns the options of a collector for it.
func serve(t *testing.T, mode string) (*filer, collect.Options) {
	t.Helper()
	f := &filer{t: t, mode: mode, counters: map[string]map[string]uint64{"vol_a": {}, "vol_b": {}}, zeroed: map[string]string{}, open: map[string][]string{}}
	server := httptest.NewTLSServer(f)
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	return f, collect.Options{User: "viewer", Secret: password,
		Source: target.Source{Name: "filer", Kind: target.SourceNetApp, URL: server.URL, Fingerprint: hex.EncodeToString(sum[:])}}
}

func collector(t *testing.T, o collect.Options) collect.Collector {
	t.Helper()
	c, err := netapp.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func reading(t *testing.T, c collect.Collector) collect.Reading {
	t.Helper()
	r, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// value is that of a metric of volume or disk name, NaN if it is absent.
func value(t *testing.T, r collect.Reading, metric, name, direction string) float64 {
	t.Helper()
	found := math.NaN()
	for _, s := range r.Samples {
		if s.Name == metric && s.Labels[collect.LabelName] == name && s.Labels[collect.LabelDirection] == direction {
			if !math.IsNaN(found) {
				t.Errorf("%s of %s (%s) is there twice", metric, name, direction)
			}
			found = s.Value
		}
	}
	return found
}

func is(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestEveryMode reads each kind of system twice: totals at once, latencies and shares from the second reading on.
func TestEveryMode(t *testing.T) {
	none := math.NaN()
	for _, mode := range []string{"7-mode", "cluster", "rest", "old rest"} {
		t.Run(mode, func(t *testing.T) {
			f, o := serve(t, mode)
			f.sameTag = true
			c := collector(t, o)
			f.set(func(f *filer) {
				f.counters["vol_a"] = map[string]uint64{"read_ops": math.MaxUint32 - 99, "read_latency": 5_000_000, "read_data": 4096, "write_ops": 7, "write_latency": 70}
				f.counters["vol_b"] = map[string]uint64{"read_ops": 5000, "read_latency": 9_000_000}
				f.busy, f.elapsed, f.zeroed = 100, 1000, map[string]string{"1.0.1": "41", "1.0.2": "done"}
			})
			r := reading(t, c)
			is(t, "total of writes", value(t, r, collect.Operations, "vol_a", "write"), 7)
			is(t, "time of writes", value(t, r, collect.OperationTime, "vol_a", "write"), 70e-6)
			is(t, "latency at first", value(t, r, collect.Latency, "vol_a", "read"), none)
			is(t, "size", value(t, r, collect.Size, "vol_b", ""), 1000)
			is(t, "used", value(t, r, collect.Used, "vol_b", ""), 400)
			is(t, "zeroing", value(t, r, collect.Zeroed, "1.0.1", ""), 0.41)
			is(t, "a disk that was not being zeroed", value(t, r, collect.Zeroed, "1.0.2", ""), none)
			f.set(func(f *filer) {
				// Reads of vol_a wrap at 32 bits, 9 writes are too few for a latency, and vol_b restarted.
				f.counters["vol_a"] = map[string]uint64{"read_ops": 100, "read_latency": 5_500_000, "read_data": 8192, "write_ops": 16, "write_latency": 900}
				f.counters["vol_b"] = map[string]uint64{"read_ops": 40, "read_latency": 4000}
				f.busy, f.elapsed, f.zeroed = 350, 2000, map[string]string{"1.0.1": "done"}
			})
			r = reading(t, c)
			is(t, "total of reads", value(t, r, collect.Operations, "vol_a", "read"), math.MaxUint32+101)
			is(t, "latency of reads", value(t, r, collect.Latency, "vol_a", "read"), 2500e-6)
			is(t, "latency of few writes", value(t, r, collect.Latency, "vol_a", "write"), none)
			is(t, "latency after a restart", value(t, r, collect.Latency, "vol_b", "read"), none)
			is(t, "total after a restart", value(t, r, collect.Operations, "vol_b", "read"), 5040)
			is(t, "ratio of reads and bytes", value(t, r, collect.BytesRate, "vol_a", "read")/value(t, r, collect.OperationsRate, "vol_a", "read"), 4096./200)
			is(t, "zeroed", value(t, r, collect.Zeroed, "1.0.1", ""), 1)
			node := map[string]string{"7-mode": "filer7"}[mode]
			if node == "" {
				node = "node-a"
			}
			is(t, "CPU", value(t, r, collect.CPUUsage, node, ""), 0.25)
			if len(r.Missing) > 0 || len(f.open) > 0 {
				t.Errorf("missing %v, iterators left open: %v", r.Missing, f.open)
			}
			wantVia := map[string]string{"7-mode": "perf-object-get-instances-iter-end", "cluster": "volume-get-iter", "old rest": "volume-get-iter", "rest": "/api/storage/volumes"}
			if !slices.Contains(f.calls, wantVia[mode]) {
				t.Errorf("calls: %v", f.calls)
			}
		})
	}
}

// TestParts: volumes are selected by the target file, and a part that cannot be read is named.
func TestParts(t *testing.T) {
	f, o := serve(t, "cluster")
	f.noDisks = true
	f.set(func(f *filer) { f.counters["vol_a"]["read_ops"], f.counters["vol_b"]["read_ops"] = 1, 1 })
	o.Source.Objects = []string{"vol_b*"}
	r := reading(t, collector(t, o))
	is(t, "a volume that is not listed", value(t, r, collect.Operations, "vol_a", "read"), math.NaN())
	is(t, "a volume that is listed", value(t, r, collect.Operations, "vol_b", "read"), 1)
	want := `[disks: source "filer": storage-disk-get-iter: Insufficient privileges: user 'viewer' (errno 13005)]`
	if fmt.Sprint(r.Missing) != want {
		t.Errorf("got %v, want %s", r.Missing, want)
	}
}

// TestRefusals: errors say why, and contain no password.
func TestRefusals(t *testing.T) {
	_, o := serve(t, "7-mode")
	page := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html><body>Welcome</body></html>") }))
	defer page.Close()
	for what, c := range map[string]struct {
		change func(*collect.Options)
		want   string
	}{
		"password":    {func(o *collect.Options) { o.Secret = "wrong-password" }, `source "filer": 401 Unauthorized: 401 for ***`},
		"certificate": {func(o *collect.Options) { o.Source.Fingerprint = "" }, `source "filer": its certificate is not trusted`},
		"other": {func(o *collect.Options) {
			o.Source.URL, o.Source.TLS, o.Source.Fingerprint = page.URL, target.TLSUnverified, ""
		}, "the answer is not that of a NetApp system"},
	} {
		one := o
		c.change(&one)
		_, err := netapp.Open(t.Context(), one)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), one.Secret) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}
