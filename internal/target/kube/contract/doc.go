// Package contract has tests only: the contract of providers and more on simulated clusters and on real ones.
package contract
