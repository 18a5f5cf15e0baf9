package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/websocket"
)

// KubeVirt simulates KubeVirt on a server: its API, and what its controllers make of VirtualMachines, their instances and migrations. The
// guest of an instance is what Server.Run starts for its pod. A guest that migrates keeps its address, which real ones do not.
type KubeVirt struct {
	// NoNodeSelector makes migrations to a chosen node unknown, as they are before KubeVirt 1.6.
	NoNodeSelector bool
	// Immobile is why no instance can migrate; "": all can.
	Immobile string
	// FailMigrations is why migrations fail; "": they succeed.
	FailMigrations string
}

// virt is the simulated KubeVirt of a server. Unless a method says otherwise, its caller holds the lock.
type virt struct{ *Server }

const (
	virtGroup   = "kubevirt.io"
	vms         = "virtualmachines"
	instances   = "virtualmachineinstances"
	migrations  = "virtualmachineinstancemigrations"
	createdBy   = "kubevirt.io/created-by"
	hostLabel   = "kubernetes.io/hostname"
	seedVolume  = "seed"
	launcherTag = "virt-launcher"
)

// virtual serves requests that only KubeVirt serves; false: it is not one. It takes the lock, as subresource, podChanged, migrate,
// evacuate and forward do.
func (s virt) virtual(w http.ResponseWriter, r *http.Request, parts []string) bool {
	if len(parts) < 3 || parts[0] != "apis" || !strings.HasSuffix(parts[1], virtGroup) {
		return false
	}
	switch {
	case s.KubeVirt == nil:
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case len(parts) == 3:
		answer(w, http.StatusOK, Object{"kind": "APIResourceList", "groupVersion": parts[1] + "/" + parts[2], "resources": []any{}})
	case parts[1] == "subresources."+virtGroup && parts[3] == "version":
		answer(w, http.StatusOK, Object{"gitVersion": "v1.6.0-simulated"})
	case parts[1] == "subresources."+virtGroup && len(parts) >= 8:
		s.subresource(w, r, parts[6], parts[7:])
	case s.refuses(w, r, parts):
	default:
		return false
	}
	return true
}

// refuses serves creations with a field that this KubeVirt does not know.
func (s virt) refuses(w http.ResponseWriter, r *http.Request, parts []string) bool {
	if !s.KubeVirt.NoNodeSelector || r.Method != http.MethodPost || parts[len(parts)-1] != migrations || r.URL.Query().Get("fieldValidation") != "Strict" {
		return false
	}
	fail(w, http.StatusBadRequest, "BadRequest", `VirtualMachineInstanceMigration in version "v1" cannot be handled: strict decoding error: unknown field "spec.addedNodeSelector"`)
	return true
}

func (s virt) subresource(w http.ResponseWriter, r *http.Request, name string, verb []string) {
	var body Object
	if r.Method == http.MethodPut {
		_ = json.NewDecoder(r.Body).Decode(&body)
	}
	switch verb[0] {
	case "start":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.startVM(w, name)
	case "stop":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopVM(w, name, body)
	case "portforward":
		s.forward(w, r, name, verb[1])
	}
}

func ended(o Object) bool {
	phase := text(o, "status", "phase")
	return phase == "Failed" || phase == "Succeeded"
}

// startVM serves the subresource start. The caller holds the lock.
func (s virt) startVM(w http.ResponseWriter, name string) {
	vm, found := s.objects[vms][name]
	i, exists := s.objects[instances][name]
	switch {
	case !found:
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("virtualmachine.kubevirt.io %q not found", name))
		return
	case exists && !ended(i):
		fail(w, http.StatusConflict, "Conflict", "VM is already running")
		return
	case exists:
		for _, pod := range s.launchers(i) {
			s.halt(pod)
			s.remove("pods", pod)
		}
		s.remove(instances, name)
	}
	w.WriteHeader(http.StatusAccepted)
	template := clone(vm)["spec"].(Object)["template"].(Object)
	m, _ := template["metadata"].(Object)
	s.put(instances, Object{
		"apiVersion": virtGroup + "/v1", "kind": "VirtualMachineInstance", "spec": template["spec"], "status": Object{"phase": "Scheduling"},
		"metadata": Object{"name": name, "labels": m["labels"], "annotations": m["annotations"]},
	})
	s.put("pods", s.launcher(s.objects[instances][name]))
	s.print(name, "Starting")
}

// launcher describes a pod of an instance. The caller holds the lock.
func (s virt) launcher(i Object) Object {
	i = clone(i)
	labels := Object{"kubevirt.io": launcherTag, createdBy: text(i, "metadata", "uid")}
	for k, v := range at(i, "metadata", "labels").(Object) {
		labels[k] = v
	}
	spec, _ := i["spec"].(Object)
	volumes, image := []any{}, ""
	given, _ := spec["volumes"].([]any)
	for _, one := range given {
		v := one.(Object)
		switch {
		case v["containerDisk"] != nil:
			image = text(v, "containerDisk", "image")
		default:
			volumes = append(volumes, v)
		}
	}
	if kernel := text(spec, "domain", "firmware", "kernelBoot", "container", "image"); kernel != "" {
		image = kernel
	}
	s.version++
	return Object{
		"apiVersion": "v1", "kind": "Pod", "metadata": Object{
			"name": fmt.Sprintf("virt-launcher-%s-%d", text(i, "metadata", "name"), s.version), "namespace": Namespace, "labels": labels, "annotations": at(i, "metadata", "annotations"),
			"ownerReferences": []any{Object{"apiVersion": virtGroup + "/v1", "kind": "VirtualMachineInstance", "name": text(i, "metadata", "name"), "uid": text(i, "metadata", "uid")}},
		},
		"spec": Object{
			"affinity": spec["affinity"], "nodeSelector": spec["nodeSelector"], "volumes": volumes, "containers": []any{Object{"name": "compute", "image": image}},
		},
	}
}

// launchers lists the pods of an instance. The caller holds the lock.
func (s virt) launchers(i Object) []string {
	var list []string
	for name, o := range s.objects["pods"] {
		if text(o, "metadata", "labels", createdBy) == text(i, "metadata", "uid") {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// instanceOf finds the instance of a pod. The caller holds the lock.
func (s virt) instanceOf(pod Object) (name string, i Object) {
	uid := text(pod, "metadata", "labels", createdBy)
	for name, i := range s.objects[instances] {
		if uid != "" && text(i, "metadata", "uid") == uid {
			return name, clone(i)
		}
	}
	return "", nil
}

func (s virt) print(name, status string) {
	if vm, ok := s.objects[vms][name]; ok && text(vm, "status", "printableStatus") != status {
		vm = clone(vm)
		vm["status"] = Object{"printableStatus": status}
		s.put(vms, vm)
	}
}

// stopVM serves the subresource stop. The caller holds the lock.
func (s virt) stopVM(w http.ResponseWriter, name string, body Object) {
	i, exists := s.objects[instances][name]
	grace, given := body["gracePeriod"].(float64)
	switch {
	case !exists || ended(i):
		fail(w, http.StatusConflict, "Conflict", "VM is not running")
	case !given || grace != 0:
		fail(w, http.StatusInternalServerError, "InternalError", "simulated guests do not shut down by themselves")
	default:
		w.WriteHeader(http.StatusAccepted)
		s.endInstance(name)
	}
}

// endInstance deletes an instance with its pods. The caller holds the lock.
func (s virt) endInstance(name string) {
	i := clone(s.objects[instances][name])
	if text(i, "metadata", "deletionTimestamp") == "" {
		meta(i)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		s.put(instances, i)
		s.print(name, "Stopping")
	}
	pods := s.launchers(i)
	for _, pod := range pods {
		s.delete("pods", pod, true)
	}
	if len(pods) == 0 {
		s.instanceGone(name)
	}
}

func (s virt) instanceGone(name string) {
	s.remove(instances, name)
	for one, m := range maps.Clone(s.objects[migrations]) {
		if text(m, "spec", "vmiName") == name {
			s.remove(migrations, one)
		}
	}
	s.print(name, "Stopped")
	if vm, ok := s.objects[vms][name]; ok && text(vm, "metadata", "deletionTimestamp") != "" {
		s.remove(vms, name)
	}
}

// deleteVM deletes a VirtualMachine, after its instance. The caller holds the lock.
func (s virt) deleteVM(name string) {
	if _, ok := s.objects[instances][name]; !ok {
		s.remove(vms, name)
		return
	}
	vm := clone(s.objects[vms][name])
	meta(vm)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	s.put(vms, vm)
	s.endInstance(name)
}

// podGone is what KubeVirt does when a pod is gone. The caller holds the lock.
func (s virt) podGone(pod Object) {
	name, i := s.instanceOf(pod)
	switch {
	case i == nil || len(s.launchers(i)) > 0:
	case text(i, "metadata", "deletionTimestamp") != "":
		s.instanceGone(name)
	case !ended(i):
		s.failInstance(name, i, "virt-launcher pod is gone")
	}
}

func (s virt) failInstance(name string, i Object, why string) {
	status := i["status"].(Object)
	status["phase"] = "Failed"
	status["conditions"] = []any{Object{"type": "Ready", "status": "False", "reason": "PodNotExists", "message": why}}
	s.put(instances, i)
	s.print(name, "Stopped")
}

// podChanged is what KubeVirt makes of the state of a pod.
func (s virt) podChanged(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects["pods"][pod]
	name, i := s.instanceOf(o)
	if i == nil || ended(i) || text(i, "metadata", "deletionTimestamp") != "" {
		return
	}
	status := i["status"].(Object)
	switch phase := text(o, "status", "phase"); {
	case phase == "Failed":
		s.failInstance(name, i, firstText(text(o, "status", "message"), "virt-launcher pod failed"))
	case phase == "Running" && status["phase"] == "Scheduling":
		migratable := Object{"type": "LiveMigratable", "status": "True"}
		if s.KubeVirt.Immobile != "" {
			migratable = Object{"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": s.KubeVirt.Immobile}
		}
		i["status"] = Object{
			"phase": "Running", "nodeName": text(o, "spec", "nodeName"), "conditions": []any{Object{"type": "Ready", "status": "True"}, migratable},
			"interfaces": []any{Object{"name": "default", "ipAddress": text(o, "status", "podIP")}},
		}
		s.put(instances, i)
		s.print(name, "Running")
	case phase == "Pending" && at(o, "status", "conditions") != nil && at(i, "status", "conditions") == nil:
		status["conditions"] = at(o, "status", "conditions")
		s.put(instances, i)
		s.print(name, "ErrorUnschedulable")
	case phase == "Pending" && at(o, "status", "containerStatuses") != nil:
		s.print(name, "ImagePullBackOff")
	}
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// migrate is what KubeVirt makes of a migration.
func (s virt) migrate(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.objects[migrations][name]
	if !ok {
		return
	}
	m = clone(m)
	vm := text(m, "spec", "vmiName")
	i := clone(s.objects[instances][vm])
	from := text(i, "status", "nodeName")
	to := text(m, "spec", "addedNodeSelector", hostLabel)
	for _, other := range slices.Sorted(maps.Keys(s.objects["nodes"])) {
		if to == "" && other != from && schedulable(s.Server, other) {
			to = other
		}
	}
	why := s.KubeVirt.FailMigrations
	switch pods := s.launchers(i); {
	case i == nil || ended(i) || len(pods) == 0:
		why = "the instance does not run"
	case !schedulable(s.Server, to):
		why = "no node is available for the target pod"
	case why == "":
		s.moveGuest(i, pods[0], to)
	}
	phase := "Succeeded"
	if why != "" {
		phase = "Failed"
	}
	if i != nil {
		i["status"].(Object)["migrationState"] = Object{"migrationUid": text(m, "metadata", "uid"), "failureReason": why, "sourceNode": from, "targetNode": to}
		s.put(instances, i)
	}
	m["status"] = Object{"phase": phase}
	s.put(migrations, m)
}

func schedulable(s *Server, node string) bool {
	n, ok := s.objects["nodes"][node]
	cordoned, _ := at(n, "spec", "unschedulable").(bool)
	return ok && !cordoned && !s.down[node]
}

// moveGuest moves a guest to a new pod on a node. The caller holds the lock, and puts the instance.
func (s virt) moveGuest(i Object, from, to string) {
	source := s.objects["pods"][from]
	target := s.launcher(i)
	target["spec"].(Object)["nodeName"] = to
	target["status"] = clone(source)["status"]
	s.stops[text(target, "metadata", "name")] = s.stops[from]
	delete(s.stops, from)
	s.put("pods", target)
	s.remove("pods", from)
	i["status"].(Object)["nodeName"] = to
}

// evacuate serves the eviction of a pod of an instance as KubeVirt's webhook does; false: the pod is evicted like any other.
func (s virt) evacuate(w http.ResponseWriter, pod string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, i := s.instanceOf(s.objects["pods"][pod])
	if i == nil || !strings.HasPrefix(text(i, "spec", "evictionStrategy"), "LiveMigrate") || s.KubeVirt.Immobile != "" {
		return false
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.objects[migrations])), func(m Object) bool {
		return text(m, "spec", "vmiName") == name && at(m, "status") == nil
	}) {
		s.version++
		s.put(migrations, Object{
			"apiVersion": virtGroup + "/v1", "kind": "VirtualMachineInstanceMigration", "spec": Object{"vmiName": name},
			"metadata": Object{"name": fmt.Sprintf("kubevirt-evacuation-%d", s.version)},
		})
	}
	fail(w, http.StatusTooManyRequests, "TooManyRequests", fmt.Sprintf("admission webhook \"virt-launcher-eviction-interceptor.kubevirt.io\" denied the request: Eviction triggered evacuation of VMI \"%s/%s\"", Namespace, name))
	return true
}

// forward serves a port of an instance as a stream.
func (s virt) forward(w http.ResponseWriter, r *http.Request, name, port string) {
	s.mu.Lock()
	links, _ := at(s.objects[instances][name], "status", "interfaces").([]any)
	s.mu.Unlock()
	if len(links) == 0 {
		fail(w, http.StatusConflict, "Conflict", "VMI is not running")
		return
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(text(links[0], "ipAddress"), port), time.Second)
	if err != nil {
		fail(w, http.StatusInternalServerError, "InternalError", "dialing VM: "+err.Error())
		return
	}
	defer conn.Close()
	websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			if !slices.Equal(c.Protocol, []string{"plain.kubevirt.io"}) {
				return websocket.ErrBadWebSocketProtocol
			}
			return nil
		},
		Handler: func(c *websocket.Conn) {
			c.PayloadType = websocket.BinaryFrame
			done := make(chan bool)
			go func() {
				defer close(done)
				_, _ = io.Copy(conn, c)
				_ = conn.Close()
			}()
			_, _ = io.Copy(c, conn)
			_ = c.Close()
			<-done
		},
	}.ServeHTTP(w, r)
}
