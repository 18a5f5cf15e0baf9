package prism_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

const (
	v3 = "/api/nutanix/v3/"
	v2 = "/PrismGateway/services/rest/v2.0/"
)

// await polls a task of v2 or v3 at a path and returns its last state.
func (r *rig) await(path, field string) object {
	r.Helper()
	for {
		status, out, _ := r.call("GET", path, nil)
		switch strings.ToUpper(fmt.Sprint(out[field])) {
		case "SUCCEEDED", "FAILED":
			return out
		case "QUEUED", "RUNNING":
		default:
			r.Fatalf("task %s: %d %v", path, status, out)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *rig) intent(method, path string, body any) string {
	r.Helper()
	status, out, _ := r.call(method, v3+path, body)
	task, _ := at(out, "status", "execution_context", "task_uuid").(string)
	if status != http.StatusAccepted || task == "" {
		r.Fatalf("%s %s: %d %v", method, path, status, out)
	}
	if t := r.await(v3+"tasks/"+task, "status"); t["status"] != "SUCCEEDED" {
		r.Fatalf("%s %s: %v", method, path, t)
	}
	id, _ := at(out, "metadata", "uuid").(string)
	return id
}

func TestIntents(t *testing.T) {
	r := newRig(t, prism.Options{})
	img := r.intent("POST", "images", object{"metadata": object{"kind": "image"}, "spec": object{"name": "debian", "resources": object{"image_type": "DISK_IMAGE"}}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.URL+v3+"images/"+img+"/file", bytes.NewReader(make([]byte, 5<<20)))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(r.Credentials.User, r.Credentials.Password)
	response, err := r.http.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	_ = response.Body.Close()
	if _, images, _ := r.call("POST", v3+"images/list", object{"kind": "image", "filter": "name==debian"}); at(images, "entities", 0, "status", "resources", "size_bytes") != float64(5<<20) {
		t.Errorf("images: %v", images)
	}
	_, clusters, _ := r.call("POST", v3+"clusters/list", object{"kind": "cluster"})
	id := r.intent("POST", "vms", object{"metadata": object{"kind": "vm"}, "spec": object{
		"name": "db", "cluster_reference": object{"kind": "cluster", "uuid": at(clusters, "entities", 0, "metadata", "uuid")},
		"resources": object{
			"num_sockets": 2, "num_vcpus_per_socket": 1, "memory_size_mib": 512, "power_state": "ON", "disk_list": []object{
				{"data_source_reference": object{"kind": "image", "uuid": img}}, {"disk_size_mib": 8},
			}, "nic_list": []object{{}},
			"guest_customization": object{"cloud_init": object{"user_data": base64.StdEncoding.EncodeToString([]byte("#cloud-config\n"))}},
		},
	}})
	_, vm, _ := r.call("GET", v3+"vms/"+id, nil)
	res, _ := at(vm, "spec", "resources").(object)
	if res["power_state"] != "ON" || at(vm, "status", "resources", "host_reference", "kind") != "host" || at(res, "disk_list", 1, "disk_size_bytes") != float64(8<<20) {
		t.Fatalf("the VM: %v", vm)
	}
	spec, meta := vm["spec"].(object), vm["metadata"].(object)
	res["power_state"], spec["name"] = "OFF", "db2"
	r.intent("PUT", "vms/"+id, object{"metadata": meta, "spec": spec})
	if status, out, _ := r.call("PUT", v3+"vms/"+id, object{"metadata": meta, "spec": spec}); status != http.StatusConflict {
		t.Errorf("an old version of the spec: %d %v", status, out)
	}
	_, vm, _ = r.call("GET", v3+"vms/"+id, nil)
	if at(vm, "status", "name") != "db2" || at(vm, "status", "resources", "power_state") != "OFF" {
		t.Errorf("the changed VM: %v", vm)
	}
	r.intent("DELETE", "vms/"+id, nil)
	if status, out, _ := r.call("GET", v3+"vms/"+id, nil); status != http.StatusNotFound || at(out, "message_list", 0, "reason") != "ENTITY_NOT_FOUND" {
		t.Errorf("a deleted VM: %d %v", status, out)
	}
	for _, kind := range []string{"hosts", "subnets", "vms"} {
		if status, out, _ := r.call("POST", v3+kind+"/list", object{"length": 1}); status != http.StatusOK || at(out, "metadata", "kind") == nil {
			t.Errorf("%s: %d %v", kind, status, out)
		}
	}
}

func TestOlderVersions(t *testing.T) {
	r := newRig(t, prism.Options{State: state.Options{HADelay: time.Millisecond}})
	img, err := r.AddImage("debian", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	id := r.create("db", img)
	change := func(method, path string, body any) {
		t.Helper()
		status, out, _ := r.call(method, v2+path, body)
		task, _ := out["task_uuid"].(string)
		if task == "" {
			t.Fatalf("%s %s: %d %v", method, path, status, out)
		}
		if done := r.await(v2+"tasks/"+task, "progress_status"); done["progress_status"] != "Succeeded" {
			t.Fatalf("%s %s: %v", method, path, done)
		}
	}
	_, hosts, _ := r.call("GET", v2+"hosts/", nil)
	third := at(hosts, "entities", 2, "uuid").(string)
	change("POST", "vms/"+id+"/set_power_state", object{"transition": "ON", "host_uuid": third})
	change("PUT", "vms/"+id, object{"ha_priority": -1})
	if _, vm, _ := r.call("GET", v2+"vms/"+id, nil); vm["host_uuid"] != third || vm["ha_priority"] != float64(-1) || vm["power_state"] != "on" {
		t.Errorf("the VM: %v", vm)
	}
	if err := r.CutHost(third); err != nil {
		t.Fatal(err)
	}
	r.until("it may not restart elsewhere", func() bool { return at(r.vm(id), "powerState") == "OFF" })
	if err := r.RestoreHost(third); err != nil {
		t.Fatal(err)
	}
	r.until("it starts with its host", func() bool { return at(r.vm(id), "powerState") == "ON" && at(r.vm(id), "host", "extId") == third })

	_, containers, _ := r.call("GET", v2+"storage_containers/?search_string=default", nil)
	pool := at(containers, "entities", 0, "storage_container_uuid").(string)
	if status, out, _ := r.call("PUT", v2+"storage_containers", object{"storage_container_uuid": pool, "compression_enabled": true}); status != http.StatusOK {
		t.Errorf("settings: %d %v", status, out)
	}
	_, container, header := r.call("GET", "/api/clustermgmt/v4.0/config/storage-containers/"+pool, nil)
	if at(container, "data", "isCompressionEnabled") != true {
		t.Errorf("the container: %v", container)
	}
	body := container["data"].(object)
	body["isCompressionEnabled"] = false
	r.do("PUT", "/api/clustermgmt/v4.0/config/storage-containers/"+pool, body, "If-Match", header.Get("ETag"))
	if status, _, _ := r.call("PUT", "/api/clustermgmt/v4.0/config/storage-containers/"+pool, body, "If-Match", header.Get("ETag")); status != http.StatusPreconditionFailed {
		t.Errorf("an old ETag: %d", status)
	}

	now := time.Now().Add(-time.Minute).Truncate(time.Second)
	_, series, _ := r.call("GET", fmt.Sprintf("%sstorage_containers/%s/stats/?metrics=controller_num_iops,nonsense&start_time_in_usecs=%d&end_time_in_usecs=%d&interval_in_secs=10",
		v2, pool, now.UnixMicro(), now.Add(40*time.Second).UnixMicro()), nil)
	if values, _ := at(series, "stats_specific_responses", 0, "values").([]any); len(values) < 3 || at(series, "stats_specific_responses", 1, "successful") != false {
		t.Errorf("statistics: %v", series)
	}
	if _, entities, _ := r.call("GET", "/PrismGateway/services/rest/v1/vms", nil); at(entities, "entities", 0, "stats", "controller_num_iops") == nil {
		t.Errorf("v1: %v", entities)
	}
}
