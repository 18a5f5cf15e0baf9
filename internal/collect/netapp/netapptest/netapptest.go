// Package netapptest simulates NetApp systems for tests: ONTAP by REST and by ZAPI, and 7-mode. Replies have the structure of published ones.
package netapptest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/target"
)

// User and Password are what a system accepts.
const (
	User     = "viewer"
	Password = "hunter2-of-filer"
)

// Filer is a NetApp system of one mode, with two volumes and one node. Its replies have the structure of published ones.
type Filer struct {
	t    testing.TB
	mode string
	mu   sync.Mutex

	// The fields below are changed by Set.
	SameTag       bool                         // the last page of a list has the tag of the request, as some versions send it
	NoDisks       bool                         // the user may not read disks
	Partial       bool                         // a node of the cluster does not answer
	Counters      map[string]map[string]uint64 // by volume and counter, in the names of ZAPI
	Busy, Elapsed uint64                       // of the node
	Zeroed        map[string]string            // disk → percent, or "done"
	Calls         []string                     // requests so far
	Open          map[string][]string          // iterators of 7-mode
	Before        func(*Filer)                 // called before each request; may be nil
}

// Set changes the system between requests.
func (f *Filer) Set(change func(*Filer)) {
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

func (f *Filer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Before != nil {
		f.Before(f)
	}
	if user, pass, _ := r.BasicAuth(); user != User || pass != Password {
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
	f.Calls = append(f.Calls, api)
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
func (f *Filer) zapi(api, body string) (answer, failed string) {
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

func (f *Filer) schema(object string) string {
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
func (f *Filer) instance(object, name, body string) string {
	values := map[string]string{}
	if strings.HasPrefix(object, "system") {
		values = map[string]string{"avg_processor_busy": fmt.Sprint(f.Busy), "cpu_elapsed_time1": fmt.Sprint(f.Elapsed)}
	} else {
		for counter, value := range f.Counters[name] {
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
	aggregation := ""
	if f.Partial {
		aggregation = "<aggregation><aggregation-data><result>partial_aggregation</result></aggregation-data></aggregation>"
	}
	return fmt.Sprintf("<instance-data>%s<counters>%s</counters><name>%s</name><uuid>uuid-of-%s</uuid></instance-data>", aggregation, b.String(), name, name)
}

func (f *Filer) instances(object string) []string {
	if strings.HasPrefix(object, "system") {
		return []string{"node-a"}
	}
	return slices.Sorted(maps.Keys(f.Counters))
}

func (f *Filer) sevenMode(api, body string) (answer, failed string) {
	if start, ok := strings.CutSuffix(api, "-iter-start"); ok {
		var records []string
		if start == "volume-list-info" {
			for name := range maps.Keys(f.Counters) {
				records = append(records, fmt.Sprintf("<volume-info><name>%s</name><size-total>1000</size-total><size-used>400</size-used><containing-aggregate>aggr0</containing-aggregate></volume-info>", name))
			}
		} else {
			for _, name := range f.instances(argument(body, "objectname")) {
				records = append(records, f.instance(argument(body, "objectname"), name, body))
			}
		}
		tag := fmt.Sprintf("%s_%d", start, len(f.Calls))
		f.Open[tag] = records
		return fmt.Sprintf("<records>%d</records><tag>%s</tag><timestamp>%d</timestamp>", len(records), tag, time.Now().Unix()), ""
	}
	tag := argument(body, "tag")
	switch {
	case strings.HasSuffix(api, "-iter-next"):
		// One record at a time, whatever the maximum is.
		records := f.Open[tag]
		f.Open[tag] = records[1:]
		list := map[bool]string{true: "volumes", false: "instances"}[strings.HasPrefix(api, "volume")]
		return fmt.Sprintf("<records>1</records><%s>%s</%s>", list, records[0], list), ""
	case strings.HasSuffix(api, "-iter-end"):
		delete(f.Open, tag)
		return "", ""
	case api == "system-get-info":
		return "<system-info><system-name>filer7</system-name><system-id>1</system-id></system-info>", ""
	case api == "disk-list-info":
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(f.Zeroed)) {
			state := "<zeroing-percent>" + f.Zeroed[name] + "</zeroing-percent><is-zeroed>false</is-zeroed>"
			if f.Zeroed[name] == "done" {
				state = "<is-zeroed>true</is-zeroed>"
			}
			fmt.Fprintf(&b, "<disk-detail-info><name>%s</name><raid-state>spare</raid-state>%s</disk-detail-info>", name, state)
		}
		return "<disk-details>" + b.String() + "</disk-details>", ""
	}
	return "", "Unable to find API: " + api
}

// cluster pages lists with one record each.
func (f *Filer) cluster(api, body string) (answer, failed string) {
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
		if f.NoDisks {
			return "", "Insufficient privileges: user 'viewer'"
		}
		for _, name := range slices.Sorted(maps.Keys(f.Zeroed)) {
			percent := f.Zeroed[name]
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
	case f.SameTag && at > 0:
		next = fmt.Sprintf("<next-tag>%d</next-tag>", at)
	}
	return fmt.Sprintf("<attributes-list>%s</attributes-list>%s<num-records>1</num-records>", records[at], next), ""
}

func (f *Filer) rest(w http.ResponseWriter, r *http.Request) {
	reply := func(v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			f.t.Error(err)
		}
	}
	f.Calls = append(f.Calls, r.URL.Path)
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
		reply(f.rows(r.URL))
	case r.URL.Path == "/api/cluster/counter/tables/system:node":
		reply(object{"counter_schemas": []object{{"name": "average_processor_busy_percent", "unit": "percent", "denominator": object{"name": "cpu_elapsed_time"}},
			{"name": "cpu_elapsed_time", "unit": "microsec"}}})
	case r.URL.Path == "/api/cluster/counter/tables/system:node/rows":
		reply(object{"records": []object{{"id": "node-a:uuid", "properties": []object{{"name": "node.name", "value": "node-a"}},
			"counters": []object{{"name": "average_processor_busy_percent", "value": f.Busy}, {"name": "cpu_elapsed_time", "value": f.Elapsed}}}}})
	case r.URL.Path == "/api/storage/volumes":
		var records []object
		for _, name := range f.instances("volume") {
			records = append(records, object{"name": name, "svm": object{"name": "svm1"}, "space": object{"size": 1000, "used": 400}, "aggregates": []object{{"name": "aggr0"}}})
		}
		reply(object{"records": records})
	case r.URL.Path == "/api/private/cli/storage/disk" && f.NoDisks:
		http.Error(w, `{"error":{"message":"not authorized for that command","code":"6"}}`, http.StatusForbidden)
	case r.URL.Path == "/api/storage/disks":
		records := []object{}
		for name, percent := range f.Zeroed {
			if percent != "done" && r.URL.Query().Get("state") == "zeroing" {
				records = append(records, object{"name": name, "state": "zeroing"})
			}
		}
		reply(object{"records": records, "num_records": len(records)})
	case r.URL.Path == "/api/private/cli/storage/disk":
		var records []object
		for name, percent := range f.Zeroed {
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

type object = map[string]any

// rows is a page of the counter table of volumes, with one row.
func (f *Filer) rows(at *url.URL) object {
	names := f.instances("volume")
	i, _ := strconv.Atoi(at.Query().Get("start.index"))
	var counters []object
	for name, value := range f.Counters[names[i]] {
		if slices.Contains(strings.Split(at.Query().Get("counters.name"), "|"), restNames[name]) {
			counters = append(counters, object{"name": restNames[name], "value": value})
		}
	}
	counters = append(counters, object{"name": "nfs.read_latency_histogram", "values": []int{0, 1}, "labels": []string{"<2us", "<6us"}})
	page := object{"num_records": 1, "records": []object{{"id": "node-a:svm1:" + names[i], "counters": counters,
		"aggregation": object{"count": 1, "complete": !f.Partial}, "properties": []object{
			{"name": "node.name", "value": "node-a"}, {"name": "svm.name", "value": "svm1"}, {"name": "name", "value": names[i]},
		}}}}
	if i+1 < len(names) {
		query := at.Query()
		query.Set("start.index", fmt.Sprint(i+1))
		page["_links"] = object{"next": object{"href": at.Path + "?" + query.Encode()}}
	}
	return page
}

// Serve starts a system for the time of a test and returns the options of a collector for it. mode is "7-mode", "cluster", "rest", or "old
// rest" for ONTAP without counter tables.
func Serve(t testing.TB, mode string) (*Filer, collect.Options) {
	t.Helper()
	f := &Filer{t: t, mode: mode, Counters: map[string]map[string]uint64{"vol_a": {}, "vol_b": {}}, Zeroed: map[string]string{}, Open: map[string][]string{}}
	server := httptest.NewTLSServer(f)
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	return f, collect.Options{User: User, Secret: Password,
		Source: target.Source{Name: "filer", Kind: target.SourceNetApp, URL: server.URL, Fingerprint: hex.EncodeToString(sum[:])}}
}
