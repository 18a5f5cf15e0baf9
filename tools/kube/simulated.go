package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

// simulated is a set of nodes without containers: their leases are renewed, their pods run as far as the API server can see, with an
// address each at which nothing listens. One watch serves all of them.
type simulated struct {
	client    kubernetes.Interface
	nodes     int
	prefix    string
	addresses netip.Prefix
	pods      cache.Store

	mu       sync.Mutex
	next     netip.Addr
	assigned map[types.UID]netip.Addr
}

const (
	simulatedLabel  = "bragg.dev/simulated" // of simulated nodes
	simulatedOff    = "bragg.dev/power"     // annotation: off
	leaseSeconds    = 40                    // as kubelets have it
	renewInterval   = 10 * time.Second
	podWorkers      = 16
	requestsASecond = 400
)

func newSimulatedKubelets() *cobra.Command {
	s := &simulated{assigned: map[types.UID]netip.Addr{}}
	var kubeconfig, addresses string
	c := &cobra.Command{
		Use: "simulated-kubelets", Short: "Nodes without containers, whose pods seem to run", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			config.QPS, config.Burst = requestsASecond, requestsASecond
			config.ContentType = "application/vnd.kubernetes.protobuf"
			if s.client, err = kubernetes.NewForConfig(config); err != nil {
				return err
			}
			if s.addresses, err = netip.ParsePrefix(addresses); err != nil {
				return err
			}
			s.next = s.addresses.Masked().Addr()
			return s.run(ctx)
		},
	}
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "path of a kubeconfig")
	c.Flags().IntVar(&s.nodes, "nodes", 1, "number of nodes")
	c.Flags().StringVar(&s.prefix, "prefix", "simulated-", "start of their names")
	c.Flags().StringVar(&addresses, "addresses", "198.18.0.0/16", "network of addresses of nodes and pods")
	return c
}

func (s *simulated) run(ctx context.Context) error {
	if err := s.register(ctx); err != nil {
		return err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	factory := informers.NewSharedInformerFactory(s.client, 0)
	informer := factory.Core().V1().Pods().Informer()
	s.pods = informer.GetStore()
	add := func(o any) {
		if pod, ok := o.(*core.Pod); ok && strings.HasPrefix(pod.Spec.NodeName, s.prefix) {
			queue.Add(pod.Namespace + "/" + pod.Name)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	var workers sync.WaitGroup
	for range podWorkers {
		workers.Go(func() {
			for s.workOnce(ctx, queue) {
			}
		})
	}
	for tick := time.NewTicker(renewInterval); ctx.Err() == nil; {
		s.renew(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	queue.ShutDown()
	workers.Wait()
	return nil
}

func (s *simulated) name(i int) string { return fmt.Sprintf("%s%d", s.prefix, i+1) }

// each calls what is to be done for each node, some at a time.
func (s *simulated) each(do func(i int) error) error {
	var wait sync.WaitGroup
	faults := make(chan error, s.nodes)
	tokens := make(chan struct{}, podWorkers)
	for i := range s.nodes {
		wait.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			if err := do(i); err != nil {
				faults <- err
			}
		})
	}
	wait.Wait()
	select {
	case err := <-faults:
		return err
	default:
		return nil
	}
}

// register makes the nodes and sets their status.
func (s *simulated) register(ctx context.Context) error {
	return s.each(func(i int) error {
		name := s.name(i)
		node := &core.Node{
			ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{
				simulatedLabel: "true", core.LabelHostname: name, core.LabelOSStable: "linux", core.LabelArchStable: "amd64",
			}},
		}
		if _, err := s.client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
			return err
		}
		s.mu.Lock()
		address := s.address()
		s.mu.Unlock()
		return s.patchNode(ctx, name, address)
	})
}

// patchNode makes a node ready.
func (s *simulated) patchNode(ctx context.Context, name string, address netip.Addr) error {
	capacity := core.ResourceList{
		core.ResourceCPU: resource.MustParse("64"), core.ResourceMemory: resource.MustParse("256Gi"),
		core.ResourcePods: resource.MustParse("110"), core.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	now := meta.Now()
	text, err := json.Marshal(map[string]any{"status": core.NodeStatus{
		Capacity: capacity, Allocatable: capacity,
		Conditions: []core.NodeCondition{{
			Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady", Message: "simulated",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}},
		Addresses: []core.NodeAddress{{Type: core.NodeInternalIP, Address: address.String()}, {Type: core.NodeHostName, Address: name}},
		NodeInfo:  core.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v1.34.0", ContainerRuntimeVersion: "simulated://0"},
	}})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, text, meta.PatchOptions{}, "status")
	return err
}

// address returns the next address. s.mu is held.
func (s *simulated) address() netip.Addr {
	s.next = s.next.Next()
	return s.next
}

// renew renews the lease of each node that is on, as a kubelet does. A node that was switched off and on again becomes ready.
func (s *simulated) renew(ctx context.Context) {
	nodes, err := s.client.CoreV1().Nodes().List(ctx, meta.ListOptions{LabelSelector: simulatedLabel, ResourceVersion: "0"})
	if err != nil {
		return
	}
	on := map[string]bool{}
	for _, n := range nodes.Items {
		if n.Annotations[simulatedOff] == "off" {
			continue
		}
		on[n.Name] = true
		for _, c := range n.Status.Conditions {
			if c.Type == core.NodeReady && c.Status == core.ConditionUnknown && strings.HasPrefix(n.Name, s.prefix) {
				_ = s.patchNode(ctx, n.Name, netip.MustParseAddr(n.Status.Addresses[0].Address)) // again with the next lease
			}
		}
	}
	_ = s.each(func(i int) error {
		if name := s.name(i); on[name] {
			return s.renewOne(ctx, name)
		}
		return nil
	})
}

func (s *simulated) renewOne(ctx context.Context, name string) error {
	now, seconds := meta.NowMicro(), int32(leaseSeconds)
	text, err := json.Marshal(map[string]any{"spec": coordination.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}})
	if err != nil {
		return err
	}
	leases := s.client.CoordinationV1().Leases(core.NamespaceNodeLease)
	if _, err = leases.Patch(ctx, name, types.MergePatchType, text, meta.PatchOptions{}); !errors.IsNotFound(err) {
		return err
	}
	lease := &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: name}}
	lease.Spec = coordination.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	_, err = leases.Create(ctx, lease, meta.CreateOptions{})
	return err
}

func (s *simulated) workOnce(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) bool {
	key, over := queue.Get()
	if over {
		return false
	}
	defer queue.Done(key)
	if err := s.work(ctx, key); err != nil {
		queue.AddRateLimited(key)
	} else {
		queue.Forget(key)
	}
	return true
}

// work brings one pod to where it should be: running, or gone.
func (s *simulated) work(ctx context.Context, key string) error {
	o, exists, err := s.pods.GetByKey(key)
	if err != nil || !exists {
		return err
	}
	pod := o.(*core.Pod)
	if pod.DeletionTimestamp != nil {
		now := int64(0)
		err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, meta.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: &meta.Preconditions{UID: &pod.UID},
		})
		if errors.IsNotFound(err) || errors.IsConflict(err) {
			err = nil
		}
		s.mu.Lock()
		delete(s.assigned, pod.UID)
		s.mu.Unlock()
		return err
	}
	if pod.Status.Phase != core.PodPending && pod.Status.Phase != "" {
		return nil
	}
	text, err := json.Marshal(map[string]any{"status": s.runningStatus(pod)})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, text, meta.PatchOptions{}, "status")
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

func (s *simulated) runningStatus(pod *core.Pod) core.PodStatus {
	s.mu.Lock()
	address, ok := s.assigned[pod.UID]
	if !ok {
		address = s.address()
		s.assigned[pod.UID] = address
	}
	s.mu.Unlock()
	now, started := meta.Now(), true
	status := core.PodStatus{Phase: core.PodRunning, StartTime: &now, PodIP: address.String(), PodIPs: []core.PodIP{{IP: address.String()}}}
	for _, kind := range []core.PodConditionType{core.PodInitialized, core.ContainersReady, core.PodReady} {
		status.Conditions = append(status.Conditions, core.PodCondition{Type: kind, Status: core.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, core.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started, ContainerID: "simulated://" + string(pod.UID) + "/" + c.Name,
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}
