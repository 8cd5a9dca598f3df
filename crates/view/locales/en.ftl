# The sentence above an order. Values: pay and receive are amounts, source and destination names of chains, payout is an address.
# count and unit say after how long a refund is possible.

lock = Lock { $pay } on { $source } until a secret is shown; receive at least { $receive } on { $destination } at { $payout }; refund after about { refund-time }.

# The payload states no terms, so nothing is known about a refund.
lock-without-terms = Lock { $pay } on { $source } until a secret is shown; receive at least { $receive } on { $destination } at { $payout }; the terms of a refund are not known.

refund-time = { $unit ->
    [seconds] { $plural ->
        [one] { $count } second
       *[other] { $count } seconds
    }
    [minutes] { $plural ->
        [one] { $count } minute
       *[other] { $count } minutes
    }
    [hours] { $plural ->
        [one] { $count } hour
       *[other] { $count } hours
    }
   *[days] { $plural ->
        [one] { $count } day
       *[other] { $count } days
    }
}
