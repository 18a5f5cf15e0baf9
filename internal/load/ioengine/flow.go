package ioengine

import "github.com/braggdev/bragg/internal/load/ioengine/shares"

// Jobs with a weight (flow) that share a flow_id are kept in proportion: each may do its share, by weight, of what all of
// them do, and a little more. Who is ahead waits for the others; when one of them ends, the rest share what is left among
// themselves. What counts is operations that were issued since the last one joined or left.

// heldBack ends the filling of a lane that is ahead of its flow, and returns when to look again.
func (l *lane) heldBack(now int64) int64 {
	if l.flow.Sleep == 0 {
		return min(now+shares.FlowPollNanos, l.end)
	}
	l.pauseUntil = now + l.flow.Sleep
	return min(l.pauseUntil, l.end)
}

// ShareFlows balances the jobs of this workload with those of other workloads that share flows. Unless later is set
// (the workload begins when another one has ended), jobs that start immediately hold the others back from now on, so
// that none runs ahead while threads are being started. It must be called before Run; Run and Close release the others.
func (r Run) ShareFlows(flows *shares.Flows, later bool) {
	for _, w := range r.workers() {
		for i := range w.lanes {
			w.lanes[i].flow = flows.Of(w.lanes[i].Job)
		}
	}
	if later || len(r.phases) == 0 {
		return
	}
	for _, w := range r.phases[0] {
		joinFlows(w.lanes)
	}
}

// joinFlows is for a worker that begins: lanes that start with it count from now on.
func joinFlows(lanes []lane) {
	for i := range lanes {
		if l := &lanes[i]; l.flow != nil && l.Spec.Delay(l.Job) == 0 {
			l.flow.Join()
		}
	}
}

// leaveFlows is for a worker that ends: its lanes hold no others back any more.
func leaveFlows(lanes []lane) {
	for i := range lanes {
		lanes[i].flow.Leave()
	}
}
