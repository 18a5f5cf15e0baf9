// Package guests has tests only: shipped scenarios on a simulated KubeVirt, with the real bragg and bragg-agent.
//
//	bragg ──▶ simulated API server, KubeVirt, nodes (kubetest) ──▶ guest: bragg-agent with the VM's own /dev
//	                    └──▶ claims and snapshots: files, copied when they are made
package guests
