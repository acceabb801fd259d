// Package objectwatch knows how to follow ConfigMaps and Secrets through the API server at
// the smallest cost: a REST client with one type, without a client set, and contents that
// are passed on as soon as they are decoded.
//
// A watch resumes where it ended, a list comes in pages, and a silent watch is torn down and
// reported. A healthy watch doesn't depend on object changes to prove itself: the agent
// requests that the server ends every watch within half the deadline, and then opens it
// again.
package objectwatch
