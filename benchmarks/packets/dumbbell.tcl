# Sixty TCP flows over RED or PI, by ns-2: ns dumbbell.tcl red|pi w_q seed
# 15 Mbit/s, packets of 500 bytes, propagation 0.2 s; the mean of 50 to 150 s.
lassign $argv kind weight seed
set ns [new Simulator]
ns-random $seed
set chance [new RNG]
$chance seed $seed
if {$kind eq "red"} {
    Queue/RED set thresh_ 150
    Queue/RED set maxthresh_ 200
    Queue/RED set linterm_ 10
    Queue/RED set q_weight_ $weight
    Queue/RED set gentle_ false
    Queue/RED set bytes_ false
    Queue/RED set queue_in_bytes_ false
    Queue/RED set mean_pktsize_ 500
    Queue/RED set setbit_ false
    set queue RED
} else {
    Queue/PI set a_ 1.822e-5
    Queue/PI set b_ 1.816e-5
    Queue/PI set w_ 170
    Queue/PI set qref_ 175
    Queue/PI set bytes_ false
    Queue/PI set queue_in_bytes_ false
    Queue/PI set mean_pktsize_ 500
    Queue/PI set setbit_ false
    set queue PI
}
Agent/TCP set packetSize_ 460  ;# 500 with the headers
Agent/TCP set window_ 10000
set left [$ns node]
set right [$ns node]
$ns simplex-link $left $right 15Mb 5ms $queue
$ns simplex-link $right $left 15Mb 5ms DropTail
$ns queue-limit $left $right 800
$ns queue-limit $right $left 10000
set meter [$ns monitor-queue $left $right ""]
for {set k 0} {$k < 60} {incr k} {
    set near [$ns node]
    set far [$ns node]
    $ns duplex-link $near $left 100Mb 45ms DropTail
    $ns duplex-link $right $far 100Mb 50ms DropTail
    $ns queue-limit $near $left 10000
    set tcp [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $near $tcp
    $ns attach-agent $far $sink
    $ns connect $tcp $sink
    set data [new Application/FTP]
    $data attach-agent $tcp
    $ns at [$chance uniform 0 10] "$data start"
}
set count [$meter get-pkts-integrator]
proc note {} {
    global meter count
    return [list [$count set sum_] [$meter set parrivals_] [$meter set pdrops_] [$meter set pdepartures_]]
}
$ns at 50 {set first [note]}
$ns at 150 {
    foreach b [note] a $first {lappend gone [expr {$b - $a}]}
    lassign $gone sum came lost left_it
    puts [format "%.4f,%.2f,%.3g" [expr {$left_it / 100.0 / 3750}] [expr {$sum / 100.0}] [expr {double($lost) / $came}]]
    exit 0
}
$ns run
