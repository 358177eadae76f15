package main

import (
	"runtime"
	"sync"
)

// jobs are computations that each write to a place of their own, so that the order in which they end does not matter.
type jobs []func()

func (j *jobs) add(job func()) { *j = append(*j, job) }

// run does the jobs, as many at a time as there are processors.
func (j jobs) run() {
	queue := make(chan func())
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for job := range queue {
				job()
			}
		})
	}
	for _, job := range j {
		queue <- job
	}
	close(queue)
	workers.Wait()
}
