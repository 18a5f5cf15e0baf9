// Package rehearsal carries shipped scenarios out on a simulated vCenter with the real bragg and bragg-agent. It has tests only.
package rehearsal
