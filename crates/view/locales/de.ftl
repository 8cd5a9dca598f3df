# Der Satz über einem Auftrag. Die Werte sind die von en.ftl.

decimal-sign = ,

lock = { $pay } auf { $source } sperren, bis ein Geheimnis gezeigt wird; dafür mindestens { $receive } auf { $destination } an { $payout } erhalten; Rückzahlung nach etwa { refund-time }.

lock-for-promise = { $pay } auf { $source } sperren, bis ein Geheimnis gezeigt wird; der Dienst verspricht dafür mindestens { $receive } auf { $destination } an { $payout }; Rückzahlung nach etwa { refund-time }.

lock-without-refund = { $pay } auf { $source } sperren, bis ein Geheimnis gezeigt wird; dafür mindestens { $receive } auf { $destination } an { $payout } erhalten; nur der Dienst kann zurückzahlen, nach etwa { refund-time }.

lock-for-promise-without-refund = { $pay } auf { $source } sperren, bis ein Geheimnis gezeigt wird; der Dienst verspricht dafür mindestens { $receive } auf { $destination } an { $payout }; nur der Dienst kann zurückzahlen, nach etwa { refund-time }.

lock-without-terms = { $pay } auf { $source } sperren, bis ein Geheimnis gezeigt wird; der Dienst verspricht dafür mindestens { $receive } auf { $destination } an { $payout }; die Bedingungen einer Rückzahlung sind nicht bekannt.

refund-time = { $unit ->
    [seconds] { $plural ->
        [one] { $count } Sekunde
       *[other] { $count } Sekunden
    }
    [minutes] { $plural ->
        [one] { $count } Minute
       *[other] { $count } Minuten
    }
    [hours] { $plural ->
        [one] { $count } Stunde
       *[other] { $count } Stunden
    }
   *[days] { $plural ->
        [one] { $count } Tag
       *[other] { $count } Tagen
    }
}
