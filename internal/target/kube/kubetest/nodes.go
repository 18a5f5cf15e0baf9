package kubetest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// AddNode adds a node that is ready.
func (s *Server) AddNode(name, uuid string) {
	s.Put("nodes", Object{
		"apiVersion": "v1", "kind": "Node", "metadata": Object{"name": name, "labels": Object{"kubernetes.io/hostname": name}},
		"status": Object{
			"capacity": Object{"cpu": "8", "memory": "16Gi"}, "allocatable": Object{"cpu": "8", "memory": "16Gi"},
			"conditions": []any{Object{"type": "Ready", "status": "True"}},
			"nodeInfo":   Object{"systemUUID": uuid, "bootID": uuid, "kubeletVersion": "v1.34.0-simulated", "osImage": "simulated", "kernelVersion": "6.1", "containerRuntimeVersion": "simulated"},
		},
	})
}

// SetNode makes the kubelet of a node answer or not. Its pods end with it, as processes do without power, and the cluster notices.
func (s *Server) SetNode(name string, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down[name] = !up
	n := clone(s.objects["nodes"][name])
	status := "True"
	if !up {
		status = "Unknown"
	}
	n["status"].(Object)["conditions"] = []any{Object{"type": "Ready", "status": status, "message": "Kubelet stopped posting node status."}}
	s.put("nodes", n)
	for _, pod := range slices.Sorted(maps.Keys(s.objects["pods"])) {
		if text(s.objects["pods"][pod], "spec", "nodeName") != name {
			continue
		}
		if !up {
			s.halt(pod)
		} else if text(s.objects["pods"][pod], "status", "phase") == "Running" {
			s.setStatus(pod, Object{"phase": "Failed", "reason": "Terminated", "message": "Pod was terminated in response to imminent node shutdown."})
		}
	}
}

// SetSchedulable cordons a node or uncordons it, as others do.
func SetSchedulable(s *Server, name string, on bool) {
	s.amend("nodes", name, func(n Object) {
		spec, _ := n["spec"].(Object)
		if spec == nil {
			spec = Object{}
		}
		spec["unschedulable"] = !on
		n["spec"] = spec
	})
}

// evict serves the eviction of a pod.
func (s *Server) evict(w http.ResponseWriter, pod string) {
	if (virt{s}).evacuate(w, pod) {
		return
	}
	s.mu.Lock()
	_, found := s.objects["pods"][pod]
	refused := s.Budget > 0
	if refused {
		s.Budget--
	}
	s.mu.Unlock()
	switch {
	case refused:
		fail(w, http.StatusTooManyRequests, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
	case !found:
		fail(w, http.StatusNotFound, "NotFound", "pods not found")
	default:
		s.Evict(pod, "Eviction API: evicting")
		answer(w, http.StatusCreated, Object{"kind": "Status", "status": "Success"})
	}
}

// Evict removes a pod as the cluster does.
func (s *Server) Evict(pod, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := clone(s.objects["pods"][pod])
	status, _ := o["status"].(Object)
	status["conditions"] = []any{Object{
		"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}}
	s.put("pods", o)
	s.delete("pods", pod, true)
}

// halt ends the agent of a pod. The caller holds the lock.
func (s *Server) halt(pod string) {
	if stop := s.stops[pod]; stop != nil {
		delete(s.stops, pod)
		s.work.Go(stop)
	}
}

func (s *Server) setStatus(pod string, status Object) {
	o := clone(s.objects["pods"][pod])
	o["status"] = status
	s.put("pods", o)
}

// react is what controllers, scheduler and kubelets make of a change. The caller holds the lock.
func (s *Server) react(resource string, o Object) {
	name := text(o, "metadata", "name")
	switch {
	case resource == "persistentvolumeclaims" && at(o, "status", "phase") == nil:
		s.work.Go(func() { s.provision(name) })
	case resource == "pods" && at(o, "status", "phase") == nil:
		s.work.Go(func() { s.schedule(name) })
	case resource == "pods" && text(o, "metadata", "labels", createdBy) != "":
		s.work.Go(func() { virt{s}.podChanged(name) })
	case resource == vms && at(o, "status") == nil:
		s.work.Go(func() { s.amend(resource, name, func(o Object) { o["status"] = Object{"printableStatus": "Stopped"} }) })
	case resource == migrations && at(o, "status") == nil:
		s.work.Go(func() { virt{s}.migrate(name) })
	case resource == "volumesnapshots" && at(o, "status") == nil:
		s.work.Go(func() {
			status := Object{"readyToUse": true}
			if err := filled(s, resource, name); err != nil {
				status = Object{"readyToUse": false, "error": Object{"message": err.Error()}}
			}
			s.amend(resource, name, func(o Object) { o["status"] = status })
		})
	}
}

func (s *Server) amend(resource, name string, change func(o Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.objects[resource][name]; ok {
		o := clone(now)
		change(o)
		s.put(resource, o)
	}
}

// FullClass is the storage class whose provisioner always fails.
const FullClass = "full"

// filled makes the content of a claim or snapshot.
func filled(s *Server, resource, name string) error {
	if s.Fill == nil {
		return nil
	}
	s.mu.Lock()
	o := clone(s.objects[resource][name])
	s.mu.Unlock()
	return s.Fill(o)
}

func (s *Server) provision(name string) {
	failed := filled(s, "persistentvolumeclaims", name)
	s.amend("persistentvolumeclaims", name, func(o Object) {
		why := "not enough free space"
		if failed != nil {
			why = failed.Error()
		}
		if class := text(o, "spec", "storageClassName"); class == FullClass || failed != nil {
			o["status"] = Object{"phase": "Pending"}
			s.event(o, "ProvisioningFailed", fmt.Sprintf("failed to provision volume with StorageClass %q: rpc error: code = ResourceExhausted desc = %s", class, why))
			return
		}
		o["status"] = Object{"phase": "Bound"}
		o["spec"].(Object)["volumeName"] = "pv-" + name
	})
}

func (s *Server) event(about Object, reason, message string) {
	uid := text(about, "metadata", "uid")
	s.put("events", Object{
		"apiVersion": "v1", "kind": "Event", "metadata": Object{"name": fmt.Sprintf("event-%d", s.version)}, "type": "Warning", "reason": reason, "message": message,
		"involvedObject": Object{"uid": uid}, "lastTimestamp": time.Now().UTC().Format(time.RFC3339),
	})
}

// MissingImage is an image that no registry has.
const MissingImage = "registry.invalid/missing:1"

func (s *Server) schedule(name string) {
	s.mu.Lock()
	o, ok := s.objects["pods"][name]
	if !ok {
		s.mu.Unlock()
		return
	}
	o = clone(o)
	node := wanted(s, o)
	switch {
	case !schedulable(s, node):
		s.setStatus(name, Object{"phase": "Pending", "conditions": []any{Object{
			"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available: 1 node(s) were unschedulable.",
		}}})
		s.event(o, "FailedScheduling", "0/2 nodes are available: 1 node(s) were unschedulable.")
		s.mu.Unlock()
		return
	case image(o) == MissingImage:
		o["spec"].(Object)["nodeName"] = node
		o["status"] = Object{"phase": "Pending", "containerStatuses": []any{Object{"name": "agent", "state": Object{"waiting": Object{
			"reason": "ImagePullBackOff", "message": "Back-off pulling image \"" + MissingImage + "\"",
		}}}}}
		s.put("pods", o)
		s.event(o, "Failed", "Failed to pull image \""+MissingImage+"\": not found")
		s.mu.Unlock()
		return
	}
	secret := clone(s.objects["secrets"][secretOf(o)])
	run := s.Run
	s.mu.Unlock()
	address, stop, err := "127.0.0.1", func() {}, error(nil)
	if run != nil {
		address, stop, err = run(o, secret)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, ok := s.objects["pods"][name]
	if !ok || text(now, "metadata", "uid") != text(o, "metadata", "uid") || text(now, "metadata", "deletionTimestamp") != "" {
		if err == nil {
			stop()
		}
		if ok {
			s.remove("pods", name)
		}
		return
	}
	o = clone(now)
	o["spec"].(Object)["nodeName"] = node
	o["status"] = Object{"phase": "Running", "podIP": address, "containerStatuses": []any{Object{"name": "agent", "state": Object{"running": Object{}}}}}
	if err != nil {
		o["status"] = Object{"phase": "Failed", "containerStatuses": []any{Object{"name": "agent", "state": Object{"terminated": Object{
			"reason": "Error", "exitCode": 1, "message": err.Error(),
		}}}}}
	} else {
		s.stops[name] = stop
	}
	s.put("pods", o)
}

func image(o Object) string {
	list, _ := at(o, "spec", "containers").([]any)
	if len(list) == 0 {
		return ""
	}
	return text(list[0], "image")
}

// secretOf is the Secret that a pod mounts.
func secretOf(o Object) string {
	volumes, _ := at(o, "spec", "volumes").([]any)
	for _, v := range volumes {
		if name := text(v, "secret", "secretName"); name != "" {
			return name
		}
	}
	return ""
}

// wanted is the node that the affinity of a pod names, or one that it does not prefer where that is not available.
func wanted(s *Server, o Object) string {
	required, _ := at(o, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").([]any)
	if len(required) > 0 {
		return named(required)
	}
	preferred, _ := at(o, "spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution").([]any)
	var terms []any
	for _, one := range preferred {
		terms = append(terms, at(one, "preference"))
	}
	node := named(terms)
	for _, other := range slices.Sorted(maps.Keys(s.objects["nodes"])) {
		if !schedulable(s, node) && schedulable(s, other) {
			node = other
		}
	}
	return node
}

// named is the node that terms of an affinity name.
func named(terms []any) string {
	for _, term := range terms {
		fields, _ := at(term, "matchFields").([]any)
		for _, f := range fields {
			if values, _ := at(f, "values").([]any); text(f, "key") == "metadata.name" && len(values) == 1 {
				name, _ := values[0].(string)
				return name
			}
		}
	}
	return ""
}

// delete begins a deletion. The caller holds the lock.
func (s *Server) delete(resource, name string, grace bool) {
	o := clone(s.objects[resource][name])
	switch {
	case resource == "pods" && grace && text(o, "spec", "nodeName") != "":
		if text(o, "metadata", "deletionTimestamp") != "" {
			return
		}
		meta(o)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		s.put(resource, o)
		if !s.down[text(o, "spec", "nodeName")] {
			s.work.Go(func() { s.kill(name, text(o, "metadata", "uid")) })
		}
	case resource == vms:
		virt{s}.deleteVM(name)
	case resource == "persistentvolumeclaims" && used(s.objects["pods"], name):
		meta(o)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		s.put(resource, o)
	default:
		if resource == "pods" {
			s.halt(name)
		}
		s.remove(resource, name)
	}
}

// kill is what a kubelet does with a pod that is deleted: its processes end first.
func (s *Server) kill(name, uid string) {
	s.mu.Lock()
	stop := s.stops[name]
	delete(s.stops, name)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects["pods"][name]; ok && text(o, "metadata", "uid") == uid {
		s.remove("pods", name)
	}
}

// used reports whether a pod uses a claim.
func used(pods map[string]Object, claim string) bool {
	for _, o := range pods {
		volumes, _ := at(o, "spec", "volumes").([]any)
		for _, v := range volumes {
			if text(v, "persistentVolumeClaim", "claimName") == claim {
				return true
			}
		}
	}
	return false
}

// released removes claims that waited for their last pod.
func (s *Server) released() {
	for name, o := range s.objects["persistentvolumeclaims"] {
		if text(o, "metadata", "deletionTimestamp") != "" && !used(s.objects["pods"], name) {
			s.remove("persistentvolumeclaims", name)
		}
	}
}
