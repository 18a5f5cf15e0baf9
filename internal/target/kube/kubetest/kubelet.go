package kubetest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const kubeletPath = "/proxy/metrics/cadvisor"

// What each simulated pod uses, per second of its life, and each machine.
const (
	PodCPU       = 0.5 // seconds
	PodWritten   = 1 << 20
	PodReceived  = 4096
	PodMemory    = 32 << 20 // bytes
	PodThrottled = 0.25     // of periods
	NodeCPU      = 2.0
	nodeMemory   = 16 << 30
	nodeCores    = 8
)

// began is when counters were zero.
var began = time.Now()

// kubelet is what the kubelet of a node says of its control groups, as the exposition format has it. Its counters follow the clock.
func kubelet(s *Server, w http.ResponseWriter, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects["nodes"][node] == nil || s.down[node] {
		fail(w, http.StatusServiceUnavailable, "ServiceUnavailable", "error trying to reach service: dial tcp: connect: no route to host")
		return
	}
	now := time.Now()
	seconds := now.Sub(began).Seconds()
	var b strings.Builder
	line := func(metric, labels string, value float64) {
		fmt.Fprintf(&b, "%s{%s} %g %d\n", metric, labels, value, now.Add(s.Ahead).UnixMilli())
	}
	b.WriteString("# HELP container_cpu_usage_seconds_total simulated\n# TYPE container_cpu_usage_seconds_total counter\n")
	root := `container="",id="/",image="",name="",namespace="",pod=""`
	fmt.Fprintf(&b, "machine_cpu_cores{machine_id=\"\"} %d\nmachine_memory_bytes{machine_id=\"\"} %d\n", nodeCores, nodeMemory)
	line("container_last_seen", root, float64(now.Add(s.Ahead).Unix()))
	line("container_cpu_usage_seconds_total", root+`,cpu="total"`, NodeCPU*seconds)
	line("container_memory_working_set_bytes", root, nodeMemory/4)
	for _, name := range []string{"receive", "transmit"} {
		line("container_network_"+name+"_bytes_total", root+`,interface="eth0"`, 1e6*seconds)
		line("container_network_"+name+"_bytes_total", root+`,interface="cni0"`, 5e6*seconds)
	}
	for _, name := range slices.Sorted(maps.Keys(s.objects["pods"])) {
		p := s.objects["pods"][name]
		if text(p, "spec", "nodeName") != node || text(p, "status", "phase") != "Running" {
			continue
		}
		group := "/kubepods/burstable/pod" + text(p, "metadata", "uid")
		of := func(container, path string) string {
			return fmt.Sprintf(`container=%q,id=%q,image="",name="",namespace=%q,pod=%q`, container, path, Namespace, name)
		}
		whole, network := of("", group), of("", group+"/sandbox")
		line("container_cpu_usage_seconds_total", whole+`,cpu="total"`, PodCPU*seconds)
		line("container_cpu_usage_seconds_total", of("agent", group+"/agent")+`,cpu="total"`, PodCPU*seconds)
		line("container_cpu_cfs_periods_total", whole, 10*seconds)
		line("container_cpu_cfs_throttled_periods_total", whole, 10*PodThrottled*seconds)
		line("container_memory_working_set_bytes", whole, PodMemory)
		line("container_fs_writes_bytes_total", whole+`,device="/dev/sda"`, PodWritten*seconds)
		line("container_network_receive_bytes_total", network+`,interface="eth0"`, PodReceived*seconds)
		line("container_network_transmit_bytes_total", network+`,interface="eth0"`, PodReceived*seconds)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write([]byte(b.String()))
}
