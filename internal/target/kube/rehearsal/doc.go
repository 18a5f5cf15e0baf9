// Package rehearsal has tests only: the contract of providers and shipped scenarios on a real cluster, with the real bragg and
// bragg-agent, volumes of a CSI driver, and BMCs that cut the power of nodes.
package rehearsal
